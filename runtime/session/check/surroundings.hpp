#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "execution/backend.hpp"
#include "execution/steps/compiler.hpp"
#include "execution/steps/executable.hpp"

namespace gpunn::training {

// What lies before and behind the outputs of an op, which its kernel must leave alone. It is read before the op runs.
class Surroundings {
 public:
  // Of node `node`, whose program is bound by `executable` with its arena at `arena`.
  Surroundings(execution::Backend& backend, const execution::CompiledProgram& program,
               const execution::Executable& executable, const void* arena, std::size_t node);

  // After the op: the value that was written to, and where; empty: none was.
  std::string damage() const;

 private:
  struct Piece {
    const std::byte* address;
    std::vector<std::byte> content;
    std::string value;
  };
  execution::Backend& backend_;
  std::vector<Piece> pieces_;
};

}  // namespace gpunn::training
