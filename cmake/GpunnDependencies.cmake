# Everything the project needs from outside.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(yaml-cpp REQUIRED)
if(NOT TARGET yaml-cpp::yaml-cpp) # the name since 0.8
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()
find_package(HDF5 REQUIRED COMPONENTS C)
# Boost's headers alone, with or without its CMake package.
find_package(Boost 1.74 CONFIG QUIET)
if(NOT TARGET Boost::headers)
  find_path(GPUNN_BOOST_INCLUDE_DIR boost/dll/shared_library.hpp REQUIRED)
  add_library(Boost::headers INTERFACE IMPORTED)
  set_target_properties(Boost::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${GPUNN_BOOST_INCLUDE_DIR})
endif()
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
# Both are needed for `gpunn data get`; without them the program is built without downloads. `gpunn serve` takes OpenSSL
# for HTTPS.
find_package(CURL)
find_package(OpenSSL COMPONENTS Crypto SSL)
# Needed to read and write ONNX files; without it the program says so.
find_package(Protobuf 3.12)
# `gpunn serve --grpc-port` needs both; without them the program says so.
find_package(gRPC CONFIG QUIET)
find_program(GPUNN_GRPC_CPP_PLUGIN grpc_cpp_plugin)
if(GPUNN_BUILD_TESTS)
  find_package(Catch2 REQUIRED) # 2 or 3
endif()
