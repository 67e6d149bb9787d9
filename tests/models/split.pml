/* SPDX-License-Identifier: MIT */
/* split protocol of DESIGN.md: NOBJ objects share slot numbers (1, or 1
  and 2 when SL==2) */
#ifndef BIAS
#define BIAS 20
#endif
#ifndef NW
#define NW 2
#endif
#ifndef OPS
#define OPS 2
#endif
#ifndef DEM
#define DEM 1
#endif
#ifndef SL
#define SL 1
#endif
#ifndef NOBJ
#define NOBJ 2
#endif
#ifdef NOSLOT
#define NWORK (NW+1)
#else
#define NWORK NW
#endif
#ifdef INHERIT
#define COL(m) ((m) == XW+1 -> 1 : (m))
#undef NWORK
#define NWORK (NW+1)
#else
#define COL(m) (m)
#endif
#define OWN NW
#define XW  (NW+1)
#define MRG (NW+2)
#define DEADV (-100)
#define DEADZ(v) ((v) <= -50)
#define OFF 0
#define PROM 1
#define ON 2
#define CLOSING 3
#define KILLED 4
#define ISB(m,b) (((m)>>(b))&1)
#ifdef NOBIAS
#define BB 0
#else
#define BB BIAS
#endif

short count[NOBJ]; byte six[NOBJ]; byte st[NOBJ];
short slot[NW*SL];
byte busy; byte rd; byte gp[5];
byte real[NOBJ]; byte tok[NOBJ]; byte told[NOBJ]; bool freed[NOBJ];
  bool pub[NOBJ];
byte done, done2; bool ownerdone, demdone, exited; 

#define RL(b) rd = rd | (1<<(b))
#define CL(k,b) gp[k] = gp[k] & ~(1<<(b))
#define RU(b) rd = rd & ~(1<<(b)); CL(0,b); CL(1,b); CL(2,b); CL(3,b); CL(4,b)
#ifdef NOGP
#define GP(k) skip
#else
#define GP(k) gp[k] = rd; (gp[k] == 0)
#endif
#define LIVE(o) assert(!freed[o])
#ifdef HOLDTOK
#define TK(o) tok[o]++
#define TE(o) skip
#else
#define TK(o) skip
#define TE(o) tok[o]++
#endif
#ifdef LIM
#define CHK(o) assert(count[o] < LIM)
#else
#define CHK(o) skip
#endif
#ifdef BASE
short base[SL];
#define BS(k) base[k]
#else
#define BS(k) 0
#endif
#ifndef F
#define F 1
#endif

#define TELL(o) count[o] = DEADV; assert(real[o] == 0); \
	told[o]++; assert(told[o] == 1)

inline promote(o, b) {
#ifdef NAIVE
  atomic { LIVE(o);
     if :: six[o] == 0 && !ISB(busy,0) -> busy = busy | 1; p = 1
#if SL > 1
        :: six[o] == 0 && ISB(busy,0) && !ISB(busy,1) -> busy = busy | 2; p = 2
#endif
        :: else -> p = 0; RU(b); TK(o) fi }
  if :: p > 0 ->
       atomic { LIVE(o); count[o] = count[o] + BB; CHK(o) }
       atomic { LIVE(o); six[o] = p; p = 0; RU(b); TK(o) }
     :: else -> skip fi
#else
  atomic { LIVE(o);
     if :: st[o] == OFF && !ISB(busy,0) -> busy = busy | 1; st[o] = PROM; p = 1
#ifdef REPROM
        :: ((st[o] == CLOSING && six[o] == 0) || st[o] == OFF) &&
          ISB(busy,0) && !ISB(busy,1) -> busy = busy | 2; st[o] = PROM; p = 2
#endif
        :: else -> p = 0; RU(b); TK(o) fi }
  if :: p > 0 ->
       atomic { LIVE(o);
         if 
#ifdef BLIND
            :: true -> count[o] = count[o] + BB
#else
            :: count[o] >= 0 -> count[o] = count[o] + BB; CHK(o)
#endif

            :: else -> st[o] = OFF; busy = busy & ~(1<<(p-1)); p = 0;
              RU(b); TK(o) fi }
       if :: p > 0 -> atomic { LIVE(o); six[o] = p; st[o] = ON; p = 0;
         RU(b); TK(o) }
          :: else -> skip fi
     :: else -> skip fi
#endif
}

/* the caller is in the reader b and leaves it; b==99: no reader */
inline put_count(o, b) {
  atomic { LIVE(o); count[o]--; real[o]--; v = count[o]; assert(v >= -1);
#ifdef PROMREL
    if :: v != -1 -> v = 0 :: else -> skip fi }
  if :: v != -1 && b < NW -> promote(o, b)
     :: v != -1 && b >= NW -> atomic { RU(b) }
#else
    if :: v != -1 -> RU(b); v = 0 :: else -> skip fi }
  if
#endif
  :: v == -1 -> atomic { LIVE(o); v = 0;
       if :: count[o] == -1 -> TELL(o) :: else -> skip fi; RU(b) }
  :: else -> skip
  fi
}

inline closing(o, g, after) {
  LIVE(o); atomic { six[o] = 0; 
#ifndef NOGP
    gp[g] = rd 
#endif
  };
#ifndef NOGP
  (gp[g] == 0);
#endif
  d_step { sum = 0; i = 0; do :: i < NW -> sum = sum + slot[i*SL + (c-1)];
    i++ :: else -> break od; i = 0 }
#ifdef MERGE_ADD
  atomic { LIVE(o); count[o] = count[o] + sum - BS(c-1) - BB; v = count[o];
    sum = 0; assert(v >= -1) 
#ifdef MERGE_READER
   ; RL(MRG)
#endif
  }
  if :: v == -1 -> atomic { LIVE(o); if :: count[o] == -1 ->
    TELL(o) :: else -> skip fi 
#ifdef MERGE_READER
   ; RU(MRG)
#endif
     }
     :: else -> 
#ifdef MERGE_READER
     atomic { RU(MRG) }
#else
     skip
#endif
  fi;
#ifndef NAIVE
  atomic { if :: !told[o] -> st[o] = after :: else -> skip fi }
#endif
#else
  atomic { LIVE(o); v = count[o] + sum - BS(c-1) - BB; sum = 0; assert(v >= -1);
    if :: v == -1 -> TELL(o) :: else -> count[o] = v fi;
#ifndef NAIVE
#ifdef REPROM
    if :: st[o] == CLOSING -> st[o] = after :: else -> skip fi
#else
    st[o] = after
#endif
#endif
  }
#endif
  d_step { v = 0;
#ifdef BASE
    i = 0; base[c-1] = 0; do :: i < NW ->
      base[c-1] = base[c-1] + slot[i*SL + (c-1)]; i++ :: else -> break od;
      i = 0;
#endif
#if !defined(RESIDUE) && !defined(BASE)
    i = 0; do :: i < NW -> slot[i*SL + (c-1)] = 0; i++ :: else -> break od;
      i = 0;
#endif
    busy = busy & ~(1<<(c-1)); c = 0 }
}

inline take_close(o, g, after) {
#ifdef NAIVE
  atomic { c = six[o] };
#else
  atomic { if :: st[o] == ON -> LIVE(o); st[o] = CLOSING;
    c = six[o] :: else -> c = 0 fi };
#endif
  if :: c > 0 -> closing(o, g, after) :: else -> skip fi
}

inline flush(me, o) {   /* inside the reader; s is the slot number */
#ifdef FLUSH
  if :: slot[COL(me)*SL+s-1] > F || slot[COL(me)*SL+s-1] < -F ->
        v = slot[COL(me)*SL+s-1]; 
        atomic { LIVE(o); count[o] = count[o] + v; assert(count[o] >= 0) };
        slot[COL(me)*SL+s-1] = 0; v = 0
     :: else -> skip fi;
#endif
  s = 0
}

inline hold(me, has, o) {
  atomic { RL(me); if :: pub[o] -> skip :: else -> RU(me); ok = 0;
    goto out fi };
  atomic { LIVE(o); s = six[o]; if :: !has -> s = 0 :: else -> skip fi };
  if
  #ifdef FLUSH
  :: s > 0 -> atomic { LIVE(o); slot[COL(me)*SL + s-1]++; real[o]++; TE(o);
    assert(told[o]==0); ok = 1 }; flush(me, o)
#else
  :: s > 0 -> atomic { LIVE(o); slot[COL(me)*SL + s-1]++; s = 0; real[o]++;
    TE(o); assert(told[o]==0); ok = 1 }
#endif
  :: else ->
     atomic { LIVE(o); count[o]++; v = count[o];
       if :: v >= 0 -> real[o]++; TE(o); assert(told[o]==0); ok = 1; v = 0
          :: else -> ok = 0 fi }
     if :: !ok -> atomic { LIVE(o); assert(DEADZ(v)); count[o] = DEADV;
       v = 0; RU(me) } :: else -> skip fi
  fi;
  if :: ok -> if :: atomic { RU(me);
    TK(o) }  :: promote(o, me) fi :: else -> skip fi;
  ok = 0;
out: skip
}

inline release(me, has, o) {
  atomic { RL(me); LIVE(o); s = six[o]; if :: !has -> s = 0 :: else ->
    skip fi };
  if
  #ifdef FLUSH
  :: s > 0 -> atomic { LIVE(o); slot[COL(me)*SL + s-1]--; real[o]-- };
    flush(me, o); atomic { RU(me) }
#else
  :: s > 0 -> atomic { LIVE(o); slot[COL(me)*SL + s-1]--; s = 0; real[o]--;
    RU(me) }
#endif
  :: else -> put_count(o, me)
  fi
}

proctype worker(byte me; bool has) {
#ifdef INHERIT
  if :: me == XW+1 -> (exited) :: else -> skip fi;
#endif
  short v; byte s, p, k; bool ok; byte o;
  do
  :: k < OPS -> k++;
     if
     :: atomic { o = 0 }; hold(me, has, o)
#if NOBJ > 1
     :: atomic { o = 1 }; hold(me, has, o)
     :: atomic { tok[1] > 0 -> tok[1]--; o = 1 }; release(me, has, o)
#endif
     :: atomic { tok[0] > 0 -> tok[0]--; o = 0 }; release(me, has, o)
#ifdef GROW
     :: has -> atomic { RL(me); v = slot[COL(me)*SL] };
       atomic { slot[COL(me)*SL] = v; v = 0; RU(me) }
#endif
     fi
  :: break
  od;
#ifdef INHERIT
  if :: me == 1 -> atomic { exited = 1; done++; done2++; k = 0 };
    goto end :: else -> skip fi;
#endif
  atomic { done++; o = 0; k = 0 };
  do
  :: atomic { tok[0] > 0 -> tok[0]--; o = 0 }; release(me, has, o)
#if NOBJ > 1
  :: atomic { tok[1] > 0 -> tok[1]--; o = 1 }; release(me, has, o)
  :: atomic { done == NWORK && tok[0] == 0 && tok[1] == 0 -> break }
#else
  :: atomic { done == NWORK && tok[0] == 0 -> break }
#endif
  od;
  atomic { done2++; o = 0 };
end: skip
}

proctype owner() {
  short v, sum; byte s, p, o, c, i; bool ok;
  do
  :: atomic { pub[0] -> pub[0] = 0; o = 0 }; goto drop
#if NOBJ > 1
  :: atomic { pub[1] -> pub[1] = 0; o = 1 }; goto drop
  :: atomic { !pub[0] && !pub[1] -> break }
#else
  :: atomic { !pub[0] -> break }
#endif
  od;
  goto fin;
drop:
#ifdef KILL
  if
  :: true ->
     do
     :: atomic { st[o] == OFF -> st[o] = KILLED; break }
     :: atomic { st[o] == ON -> st[o] = CLOSING; c = six[o] };
       closing(o, 3, KILLED); break
     od
#ifndef KILLALWAYS
  :: true
#endif
  fi;
#endif
#ifdef NKILL
  take_close(o, 3, OFF);
#endif
#ifdef OUTSIDE
  put_count(o, OWN)     /* never entered the reader */
#else
  release(OWN, false, o)
#endif
  ;
#if NOBJ > 1
  if :: atomic { pub[0] -> pub[0] = 0; o = 0 }; goto drop
     :: atomic { pub[1] -> pub[1] = 0; o = 1 }; goto drop
     :: atomic { !pub[0] && !pub[1] }
  fi;
#endif
fin:
#ifdef LATEKILL
  /* kill of an object whose base reference the caller has already released */
  if
  :: atomic { LIVE(0); st[0] == ON -> st[0] = CLOSING; c = six[0] };
    closing(0, 3, KILLED)
  :: atomic { LIVE(0); st[0] != ON }
  fi;
#endif
  ownerdone = 1
}

proctype demoter() {
  short v, sum; byte c, i, k, o;
  do
  :: k < DEM -> k++; o = 0; take_close(o, 2, OFF)
#if NOBJ > 1
  :: k < DEM -> k++; o = 1; take_close(o, 2, OFF)
#endif
  :: break
  od;
  atomic { k = 0; o = 0; demdone = 1 }
}

proctype reclaim(byte o) { 
#ifdef NORECLAIM
  skip
#else
  atomic { told[o] > 0; gp[o] = rd }; atomic { gp[o] == 0; freed[o] = 1 }
#endif
}

proctype finale() {
  short v, sum; byte c, i;
  done2 == NWORK && ownerdone && demdone;
  if :: six[0] > 0 -> take_close(0, 4, OFF) :: else -> skip fi;
  assert(real[0] == 0 && told[0] == 1);
#if NOBJ > 1
  if :: six[1] > 0 -> take_close(1, 4, OFF) :: else -> skip fi;
  assert(real[1] == 0 && told[1] == 1);
#endif
}

init {
  atomic {
    pub[0] = 1; real[0] = 1;
#if NOBJ > 1
    pub[1] = 1; real[1] = 1;
#endif
    run worker(0, true); 
#if NW > 1
    run worker(1, true);
#endif
#ifdef NOSLOT
    run worker(XW, false);
#endif
#ifdef INHERIT
    run worker(XW+1, true);
#endif
    run owner(); run demoter(); run reclaim(0);
#if NOBJ > 1
    run reclaim(1);
#endif
    run finale();
  }
}
