/* SPDX-License-Identifier: MIT */
/*
 * intrusive_ptr - Boost's pointer to an object that derives from Boost's own
 * counter
 *
 * A get is a copy of the pointer, a put its end. What the library calls when
 * the last one goes, delete, only notes it here: the memory is the bench's.
 */
#include "peers.h"

#include <climits>
#include <cstring>
#include <new>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

namespace
{

bool deleted;

struct object;
using counter =
	boost::intrusive_ref_counter<object, boost::thread_safe_counter>;

struct object : counter {
	static void operator delete(void *)
	{
		deleted = true;
	}
};

using pointer = boost::intrusive_ptr<object>;
static_assert(sizeof(counter) == sizeof(int), "the counter is not one int");

void init(void *state, uint64_t refs)
{
	const auto value = static_cast<unsigned int>(refs);

	::new (state) object;
	/* There is no call that sets it; it is all that the base has. */
	std::memcpy(state, &value, sizeof(value));
}

bool get(void *state)
{
	intrusive_ptr_add_ref(static_cast<const object *>(state));
	return true;
}

bool put(void *state)
{
	deleted = false;
	intrusive_ptr_release(static_cast<const object *>(state));
	return deleted;
}

uint64_t held(const void *state)
{
	return static_cast<const object *>(state)->use_count();
}

} // namespace

void peer_intrusive_ptr_work(struct bench_self *self)
{
	const pointer mine(static_cast<object *>(self->state));

	BENCH_REPEAT(self, pointer copy(mine));
	if (deleted)
		peer_broken();
}

const struct peer peer_intrusive_ptr = {
	sizeof(counter),       sizeof(object), init, get, put, held,
	{ INT_MAX, UINT_MAX },
};
