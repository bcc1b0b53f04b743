# gpunn_precompile(<group> <target> <header>...): the headers are parsed once for all targets of the group, which have
# the same flags. Not with a compiler cache, which would hold nothing for another build tree.
function(gpunn_precompile group target)
  if(NOT GPUNN_PRECOMPILE OR CMAKE_CXX_COMPILER_LAUNCHER)
    return()
  endif()
  set_target_properties(${target} PROPERTIES DEFINE_SYMBOL "") # by which flags would differ
  get_property(first GLOBAL PROPERTY GPUNN_PRECOMPILED_${group})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY GPUNN_PRECOMPILED_${group} ${target})
  endif()
endfunction()
