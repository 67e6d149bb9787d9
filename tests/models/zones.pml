/* SPDX-License-Identifier: MIT */
/* rcuref zones scaled to 8 bits, get_n / put_n */
#ifndef NT
#define NT 3
#endif
#ifndef OPS
#define OPS 3
#endif
#ifndef NMAX
#define NMAX 3
#endif
#ifndef INIT
#define INIT 2      /* references at start */
#endif
#ifndef DR
#define DR NMAX
#endif
#define M(x) ((x) & 255)
int cnt = INIT-1; int tok = INIT; int real = INIT; byte told; bool sat;
  bool bad; byte dn; int nn;

inline put(n) {
  atomic { cnt = M(cnt - n); v = cnt; real = real - n }
  if
  :: v < 128 -> skip
  :: v == 255 -> atomic { if :: cnt == 255 -> cnt = 224; told++;
    assert(told == 1); assert(bad || real == 0) :: else -> skip fi }
  :: v >= 192 && v < 255 -> assert(bad); atomic { cnt = 224 }
  :: v >= 128 && v < 192 -> atomic { cnt = 160; sat = 1 }
  fi
}
inline get(n) {
  atomic { cnt = M(cnt + n); v = cnt;
    if :: v < 192 -> real = real + n; assert(told == 0); 
#ifdef SATCHK
       if :: v < 128 -> assert(!sat) :: else -> skip fi
#endif
       :: else -> skip fi }
  if
  :: v < 128 -> tok = tok + n
  :: v >= 192 -> assert(told == 1 || bad); atomic { cnt = 224 }
  :: v >= 128 && v < 192 -> atomic { cnt = 160; sat = 1; tok = tok + n }
  fi
}
proctype w(byte last) { int v; byte k; int n;
  do
  :: k < OPS -> k++;
     if :: n = 1 :: n = NMAX fi;
     if
     :: get(n)
     :: atomic { tok >= n -> tok = tok - n }; put(n)
#ifdef MISUSE
     :: atomic { bad = 1 }; put(n)
#endif
     fi; v = 0
  :: break
  od;
  atomic { dn++; n = 0; k = 0 }
#ifndef MISUSE
  do
  :: atomic { tok > 0 && !sat -> if :: tok > DR -> n = DR :: else ->
    n = tok fi; tok = tok - n }; put(n); v = 0
  :: atomic { dn == NT && (tok == 0 || sat) -> break }
  od
#endif
}
init { atomic { byte i; do :: i < NT -> run w(i); i++ :: else -> break od }
  (_nr_pr == 1);
#ifndef MISUSE
  assert(sat || (told == 1 && real == 0 && cnt == 224));
  assert(!sat || (told == 0 && cnt >= 128 && cnt < 192))
#else
  assert(told <= 1)
#endif
}
