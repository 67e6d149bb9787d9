/* SPDX-License-Identifier: MIT */
/*
 * table - where every member of every exposed struct lies, and how large it is
 *
 * Goal: one table per word size and line size, whatever compiler, language,
 * flag or machine made it. Method: nothing runs. Each line is a string in the
 * assembly, with constants that the compiler puts in as it would put them into
 * an instruction; same.sh takes the lines out of the output of -S. So it works
 * for machines that are not there.
 *
 *	->struct dstref_dst.count 64 4 written
 *	->struct dstref_dst 128 64 -
 *
 * A member: offset, size, group; a struct or an enum: size, alignment.
 * dwarf.sh holds the lists below against the debug information, so that no
 * struct and no member can be left out.
 */
#include <dstref/dstref.h>

/* Operands as bare numbers: "c" says so but on s390, where it cuts bytes. */
#ifdef __s390x__
#define VALUES " %0 %1 "
#else
#define VALUES " %c0 %c1 "
#endif
#define PUT(text, first, second, group)                         \
	__asm__ volatile(".ascii \"->" text VALUES group "\"\n" \
			 :                                      \
			 : "i"(first), "i"(second))
#define MEMBER(type, member, group)                                  \
	PUT(#type "." #member, (unsigned int)offsetof(type, member), \
	    (unsigned int)sizeof(((type *)0)->member), #group);
#define OTHER(type, member) MEMBER(type, member, -)
#define FIELD(type, member, group, receive, transmit, completion, control) \
	MEMBER(type, member, group)
#define TYPE(type)                             \
	PUT(#type, (unsigned int)sizeof(type), \
	    (unsigned int)DSTREF_ALIGNOF(type), "-");

/* Structs that have no list of fields, and so no groups. */
#define OTHER_FIELDS(X)                              \
	X(struct dstref_report, kind)                \
	X(struct dstref_report, call)                \
	X(struct dstref_report, object)              \
	X(struct dstref_report, value)               \
	X(struct dstref_report, seen)                \
	X(struct dstref_report, text)                \
	X(struct dstref_report_hook, fn)             \
	X(struct dstref_report_hook, ctx)            \
	X(struct dstref_count, word)                 \
	X(struct dstref_wmem, word)                  \
	X(struct dstref_config_unpacked, byte)       \
	X(struct dstref_config_unpacked, word)       \
	X(struct dstref_rcu_head, space)             \
	X(struct dstref_net_mem, alloc)              \
	X(struct dstref_net_mem, free)               \
	X(struct dstref_net_mem, ctx)                \
	X(struct dstref_net_attr, flavour)           \
	X(struct dstref_net_attr, mem)               \
	X(struct dstref_net_attr, max_hot)           \
	X(struct dstref_net_attr, reserved)          \
	X(struct dstref_net_abi, version)            \
	X(struct dstref_net_abi, line_size)          \
	X(struct dstref_net_abi, attr_size)          \
	X(struct dstref_net_abi, word_size)          \
	X(struct dstref_net_entry, link.le_next)     \
	X(struct dstref_net_entry, link.le_prev)     \
	X(struct dstref_net_entry, born)             \
	X(struct dstref_net_entry, kind)             \
	X(struct dstref_net_counters, dst)           \
	X(struct dstref_net_counters, sock)          \
	X(struct dstref_net_counters, callbacks)     \
	X(struct dstref_net_counters, sleeps_room)   \
	X(struct dstref_net_counters, sleeps_data)   \
	X(struct dstref_net_counters, wakeups_room)  \
	X(struct dstref_net_counters, wakeups_data)  \
	X(struct dstref_cell, gets)                  \
	X(struct dstref_cell, puts)                  \
	X(struct dstref_split_attr, flavour)         \
	X(struct dstref_split_attr, alloc)           \
	X(struct dstref_split_attr, free)            \
	X(struct dstref_split_attr, ctx)             \
	X(struct dstref_split_attr, cells)           \
	X(struct dstref_split_attr, reserved)        \
	X(struct dstref_split, count)                \
	X(struct dstref_split, state)                \
	X(struct dstref_split, cell)                 \
	X(struct dstref_split, domain)               \
	X(struct dstref_split, zero)                 \
	X(struct dstref_split_counters, cells)       \
	X(struct dstref_split_counters, used)        \
	X(struct dstref_split_counters, threads)     \
	X(struct dstref_split_counters, requests)    \
	X(struct dstref_split_counters, refused)     \
	X(struct dstref_split_counters, promotions)  \
	X(struct dstref_split_counters, demotions)   \
	X(struct dstref_net_counters, threads)       \
	X(struct dstref_net_counters, cells)         \
	X(struct dstref_net_counters, cells_used)    \
	X(struct dstref_net_counters, cells_refused) \
	X(struct dstref_net_counters, requests)      \
	X(struct dstref_net_counters, promotions)    \
	X(struct dstref_net_counters, demotions)     \
	X(struct dstref_net_counters, promoted)      \
	X(struct dstref_dst_ops, name)               \
	X(struct dstref_dst_ops, destroy)            \
	X(struct dstref_dst_ops, check)              \
	X(struct dstref_dst_slot, dst)               \
	X(struct dstref_dst_ref, word)               \
	X(struct dstref_sock_proto, name)            \
	X(struct dstref_sock_proto, size)            \
	X(struct dstref_sock_proto, release)         \
	X(struct dstref_sock_proto, destroy)         \
	X(struct dstref_sock_proto, clone)           \
	X(struct dstref_sock_space, fn)              \
	X(struct dstref_sock_space, data)            \
	X(struct dstref_skb, dst)                    \
	X(struct dstref_skb, owner)                  \
	X(struct dstref_skb, charge)                 \
	X(struct dstref_skb, truesize)

#define TYPES(X)                        \
	X(enum dstref_report_kind)      \
	X(enum dstref_net_kind)         \
	X(struct dstref_report)         \
	X(struct dstref_report_hook)    \
	X(struct dstref_count)          \
	X(struct dstref_wmem)           \
	X(struct dstref_cell)           \
	X(struct dstref_split_attr)     \
	X(struct dstref_split)          \
	X(struct dstref_split_counters) \
	X(struct dstref_rcu_head)       \
	X(struct dstref_net_mem)        \
	X(struct dstref_net_attr)       \
	X(struct dstref_net_abi)        \
	X(struct dstref_net_entry)      \
	X(struct dstref_net_counters)   \
	X(struct dstref_net)            \
	X(struct dstref_dst_ops)        \
	X(struct dstref_dst_slot)       \
	X(struct dstref_dst_ref)        \
	X(struct dstref_dst)            \
	X(struct dstref_sock_proto)     \
	X(struct dstref_sock_space)     \
	X(struct dstref_sock)           \
	X(struct dstref_skb)

void table(void);

void table(void)
{
	DSTREF_NET_FIELDS(FIELD)
	DSTREF_DST_FIELDS(FIELD)
	DSTREF_SOCK_FIELDS(FIELD)
	OTHER_FIELDS(OTHER)
	TYPES(TYPE)
	PUT("lines of a dst, held and borrowed", DSTREF_DST_LINES_HOLD,
	    DSTREF_DST_LINES_BORROW, "-");
	PUT("lines of a sock, charged and completed",
	    DSTREF_LINES(DSTREF_SOCK_FIELDS(DSTREF_FIELD_CHARGE)),
	    DSTREF_LINES(DSTREF_SOCK_FIELDS(DSTREF_FIELD_COMPLETE)), "-");
}
