#include <gpunn/error.hpp>

#include <filesystem>

#include <dlfcn.h>

#include "serving/grpc/face.hpp"

namespace gpunn::serving {

std::unique_ptr<GrpcFace> open_grpc(const GrpcOptions& options, const HttpCallbacks& callbacks) {
  Dl_info own{};
  std::filesystem::path library = "libgpunn_grpc.so";
  if (::dladdr(reinterpret_cast<const void*>(&open_grpc), &own) != 0 && own.dli_fname != nullptr) {
    // Beside libgpunn in a build tree, with the plugins where it is installed.
    const std::filesystem::path folder = std::filesystem::path(own.dli_fname).parent_path();
    library = std::filesystem::exists(folder / library) ? folder / library : folder / "gpunn" / library;
  }
  void* const opened = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays open: gRPC has threads of its own
  if (opened == nullptr) {
    const char* const why = ::dlerror();
    throw Error("gRPC can't be served: " + std::string(why == nullptr ? library.string() : why) +
                    ". gpunn is built with it where Debian's libgrpc++-dev and protobuf-compiler-grpc are installed",
                ExitCode::missing);
  }
  auto* const open = reinterpret_cast<GrpcOpen*>(::dlsym(opened, kGrpcOpen));
  if (open == nullptr) throw Error(library.string() + ": the library is not gpunn's", ExitCode::missing);
  std::unique_ptr<GrpcFace> face(open(options, callbacks));
  if (face == nullptr) {
    throw Error("can't listen at " + options.address + " port " + std::to_string(options.port) +
                    " for gRPC; choose another with --grpc-port, or 0 for any that is free",
                ExitCode::missing);
  }
  return face;
}

}  // namespace gpunn::serving
