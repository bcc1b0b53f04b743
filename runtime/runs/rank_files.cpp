#include "runs/rank_files.hpp"

#include <gpunn/error.hpp>

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <sys/mman.h>

#include "common/files.hpp"
#include "common/system_call.hpp"

namespace gpunn::training {

storage::Checkpoint load_on_all_ranks(distributed::Team& team, const std::filesystem::path& file) {
  std::string content = team.speaks() ? read_text(file) : std::string();
  uint64_t size = content.size();
  team.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  content.resize(size);
  team.broadcast(std::as_writable_bytes(std::span(content)), 0);
  if (team.speaks()) return storage::load_checkpoint(file);
  const FileDescriptor memory(::memfd_create("checkpoint", MFD_CLOEXEC));
  if (!memory || !write_all(memory.get(), content)) {
    throw Error("the checkpoint of rank 0 can't be kept in memory: " + reason_of(errno));
  }
  return storage::load_checkpoint("/proc/self/fd/" + std::to_string(memory.get()));
}

}  // namespace gpunn::training
