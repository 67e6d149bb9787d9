# SPDX-License-Identifier: MIT
#
# The rivals of the experiment `counts`, to be included where the target
# dstref-bench is: each is built when its package is there, and PEER_ID=1 says
# so, or PEER_ID=0, and then the program lists it as not built, with the package
# that it needs.
include(CheckIncludeFileCXX)
include(CheckLanguage)

# peer ID FILE BUILT [FLAGS...]: a rival; FLAGS are those of its package, whose
# headers our warnings leave alone.
function(peer id file built)
	if(NOT built)
		target_compile_definitions(dstref-bench PRIVATE PEER_${id}=0)
		return()
	endif()
	set(source ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${file})
	list(TRANSFORM ARGN REPLACE "^-I" "-isystem")
	target_compile_definitions(dstref-bench PRIVATE PEER_${id}=1)
	target_sources(dstref-bench PRIVATE ${source})
	set_property(SOURCE ${source} PROPERTY COMPILE_OPTIONS ${ARGN})
endfunction()

pkg_check_modules(PEER_URCU QUIET liburcu)
pkg_check_modules(PEER_CK QUIET ck)
pkg_check_modules(PEER_DPDK QUIET libdpdk)
pkg_check_modules(PEER_GLIB QUIET glib-2.0)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
	enable_language(CXX)
	set_property(TARGET dstref-bench PROPERTY CXX_STANDARD 17)
	check_include_file_cxx(boost/smart_ptr/intrusive_ref_counter.hpp
		PEER_BOOST)
endif()

# GLib's calls are linked; of the others only inline calls are used. DPDK's
# headers are in GNU C.
target_sources(dstref-bench PRIVATE ${CMAKE_CURRENT_LIST_DIR}/peers.c)
peer(atomic atomic.c ON)
peer(mutex mutex.c ON)
peer(urcu_ref urcu_ref.c "${PEER_URCU_FOUND}" ${PEER_URCU_CFLAGS})
peer(ck_pr ck_pr.c "${PEER_CK_FOUND}" ${PEER_CK_CFLAGS})
peer(rte_mbuf rte_mbuf.c "${PEER_DPDK_FOUND}" ${PEER_DPDK_CFLAGS} -std=gnu11)
peer(g_atomic_ref_count g_atomic_ref_count.c "${PEER_GLIB_FOUND}"
	${PEER_GLIB_CFLAGS})
target_link_libraries(dstref-bench PRIVATE ${PEER_GLIB_LINK_LIBRARIES})
peer(shared_ptr shared_ptr.cc "${CMAKE_CXX_COMPILER}")
peer(intrusive_ptr intrusive_ptr.cc "${PEER_BOOST}")
