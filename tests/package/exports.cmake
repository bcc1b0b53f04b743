# libgpunn exports the public API and nothing of what it is made of: no room's names, no library's that stands in its
# headers alone. What the compiler brings in, as a static libstdc++, is not asked about.
execute_process(COMMAND ${NM} -DC --defined-only ${LIBRARY} OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
file(GLOB rooms RELATIVE ${SOURCE}/runtime ${SOURCE}/runtime/*)
list(REMOVE_ITEM rooms eager) # gpunn/ops.hpp, which is public, is in the namespace of its room
list(JOIN rooms "|" rooms)
string(REGEX MATCHALL "[^\n]+" lines "${listing}")
set(count 0)
foreach(line IN LISTS lines)
  if(line MATCHES "^[0-9a-f]* *[A-Z] (gpunn::(${rooms})::|nlohmann|YAML|CLI::|boost)")
    message(SEND_ERROR "exported, and not part of the public API: ${line}")
  elseif(line MATCHES "^[0-9a-f]* *T gpunn(::|_)")
    math(EXPR count "${count} + 1")
  endif()
endforeach()
if(count LESS 50)
  message(FATAL_ERROR "${LIBRARY}: expected the public API, found ${count} symbols")
endif()
