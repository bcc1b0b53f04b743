// In place of read_file_model.cpp where the build found no protobuf.
#include <gpunn/error.hpp>

#include "interchange/onnx/file_model.hpp"
#include "interchange/onnx/import.hpp"

namespace gpunn::interchange {

void require_onnx() {
  throw Error(
      "this gpunn was built without protobuf, which ONNX files need: install libprotobuf-dev and protobuf-compiler, "
      "and build it again",
      ExitCode::missing);
}

FileModel read_file_model(const std::filesystem::path& /*file*/) {
  require_onnx();
  return {};
}

}  // namespace gpunn::interchange
