// In place of read_file_model.cpp where the build found no protobuf.
#include <gpunn/error.hpp>

#include "interchange/onnx/file_model.hpp"

namespace gpunn::interchange {

FileModel read_file_model(const std::filesystem::path& file) {
  throw Error(file.string() +
                  ": this gpunn was built without ONNX. Build it where protobuf's compiler and library are installed "
                  "(Debian: protobuf-compiler, libprotobuf-dev)",
              ExitCode::missing);
}

}  // namespace gpunn::interchange
