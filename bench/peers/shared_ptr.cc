/* SPDX-License-Identifier: MIT */
/*
 * shared_ptr - the standard library's, its object and count in one block
 *
 * A get is a copy of the pointer, a put its end. The block comes from an
 * allocator that hands out a line of the state and takes nothing back, so that
 * memory stays readable after the last put. No call sets the count: its word
 * is the one that a copy moves by one. A pointer has two words instead of one,
 * which the bytes, those of the block, do not show.
 */
#include "peers.h"

#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace
{

bool destroyed;

struct object {
	void *payload = nullptr;
	~object()
	{
		destroyed = true;
	}
};

using pointer = std::shared_ptr<object>;

struct state {
	alignas(BENCH_LINE) unsigned char block[BENCH_LINE];
	alignas(BENCH_LINE) unsigned char first[sizeof(pointer)];

	const pointer &ptr() const
	{
		return *reinterpret_cast<const pointer *>(first);
	}
};

/*
 * Where the next block goes. The allocator has no member of its own, which the
 * block would keep; states are made by one thread, one at a time.
 */
unsigned char *room;
std::size_t used;

template <typename T> struct arena {
	using value_type = T;

	arena() = default;
	template <typename U> arena(const arena<U> &)
	{
	}
	T *allocate(std::size_t n)
	{
		static_assert(sizeof(T) <= BENCH_LINE, "a block of many lines");
		used = n * sizeof(T);
		return reinterpret_cast<T *>(room);
	}
	void deallocate(T *, std::size_t)
	{
	}
};

/* Where the block has a word that one copy made one more. */
std::size_t moved(const unsigned char *before, const unsigned char *after)
{
	for (std::size_t at = 0; at < BENCH_LINE; at += sizeof(int)) {
		int was, is;

		std::memcpy(&was, before + at, sizeof(was));
		std::memcpy(&is, after + at, sizeof(is));
		if (is == was + 1)
			return at;
	}
	std::abort();
}

void init(void *memory, uint64_t refs)
{
	state *s = ::new (memory) state;
	const int value = static_cast<int>(refs);
	unsigned char before[BENCH_LINE];
	std::size_t count_at;

	room = s->block;
	::new (s->first) pointer(std::allocate_shared<object>(arena<object>()));
	std::memcpy(before, s->block, sizeof(before));
	{
		const pointer copy(s->ptr());
		count_at = moved(before, s->block);
	}
	std::memcpy(s->block + count_at, &value, sizeof(value));
}

bool get(void *memory)
{
	alignas(pointer) unsigned char kept[sizeof(pointer)];

	::new (kept) pointer(static_cast<state *>(memory)->ptr());
	return true;
}

bool put(void *memory)
{
	alignas(pointer) unsigned char kept[sizeof(pointer)];

	std::memcpy(kept, static_cast<state *>(memory)->first, sizeof(kept));
	destroyed = false;
	reinterpret_cast<pointer *>(kept)->~pointer();
	return destroyed;
}

uint64_t held(const void *memory)
{
	return static_cast<unsigned int>(
		static_cast<const state *>(memory)->ptr().use_count());
}

std::size_t bytes()
{
	state s = {};

	init(&s, 1);
	return used - sizeof(object);
}

} // namespace

void peer_shared_ptr_work(struct bench_self *self)
{
	const pointer mine(static_cast<state *>(self->state)->ptr());

	BENCH_REPEAT(self, pointer copy(mine));
	if (destroyed)
		peer_broken();
}

const struct peer peer_shared_ptr = {
	bytes(), sizeof(state), init, get, put, held, { INT_MAX, UINT_MAX },
};
