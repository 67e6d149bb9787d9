/* SPDX-License-Identifier: MIT */
/* wmem account, write space, one waiter that is also the owner */
#ifndef NC
#define NC 2
#endif
#define L 2
#ifndef THR
#define THR 0
#endif
#ifndef SLACK
#define SLACK 0
#endif
short acc = 1 + NC*L;     /* W1..W3: bytes with the owner's unit in it */
short bytes = NC*L; short units = 1 + NC; bool wbit;
  /* W4, W5: one word, always changed atomically */
bool flag, woken, freed; byte told;

#define FREE told++; assert(told==1); freed = 1

proctype completer() {
  short v; bool f;
#ifdef W1
  atomic { assert(!freed); f = flag };
  if
  :: !f -> atomic { assert(!freed); acc = acc - L; if :: acc == 0 ->
    FREE :: else -> skip fi }
  :: else ->
     atomic { assert(!freed); acc = acc - (L-1); v = acc };
     atomic { assert(!freed); if :: flag && v - 2 <= THR + SLACK ->
       woken = 1 :: else -> skip fi };
     atomic { assert(!freed); acc = acc - 1; if :: acc == 0 ->
       FREE :: else -> skip fi }
  fi
#endif
#ifdef W2
  atomic { assert(!freed); acc = acc - (L-1); v = acc };
  atomic { assert(!freed); f = flag };
  if :: f && v - 2 <= THR + SLACK -> atomic { assert(!freed);
    woken = 1 } :: else -> skip fi;
  atomic { assert(!freed); acc = acc - 1; if :: acc == 0 ->
    FREE :: else -> skip fi }
#endif
#ifdef W4
  atomic { assert(!freed); bytes = bytes - L; units--; v = bytes; f = wbit;
    if :: units == 0 -> FREE :: else -> skip fi };
  if :: f && v <= THR -> woken = 1
    /* parked by address in the net: sock memory not touched */
     :: else -> skip fi
#endif
#ifdef W5
  atomic { assert(!freed); bytes = bytes - L; v = bytes };
  atomic { assert(!freed); f = flag };
  if :: f && v <= THR -> atomic { assert(!freed); woken = 1 } :: else ->
    skip fi;
  atomic { assert(!freed); units--; if :: units == 0 -> FREE :: else ->
    skip fi }
#endif
}

proctype waiter() {
  do
  :: atomic { woken = 0 };
     atomic { flag = 1; wbit = 1 };
#if defined(W4) || defined(W5)
     if :: bytes <= THR -> break :: else -> skip fi;
#else
     if :: acc - 1 <= THR + SLACK -> break :: else -> skip fi;
#endif
     woken
  od;
  atomic { flag = 0; wbit = 0 };
#if defined(W4) || defined(W5)
  atomic { assert(!freed); units--; if :: units == 0 -> FREE :: else ->
    skip fi }
#else
  atomic { assert(!freed); acc = acc - 1; if :: acc == 0 ->
    FREE :: else -> skip fi }
#endif
}
init { atomic { byte i; do :: i < NC -> run completer(); i++ :: else ->
  break od; run waiter() } 
  (_nr_pr == 1) -> assert(told == 1) }
