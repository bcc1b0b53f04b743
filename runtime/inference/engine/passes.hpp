#pragma once

#include <bitset>
#include <cstddef>
#include <span>
#include <string>

namespace gpunn::inference {

// In the order in which they run.
enum class EnginePassId { fold_batch_norm, eight_bits, remove_dead_ops, fuse, layout, fold_constants, in_place };
inline constexpr std::size_t kEnginePasses = 7;

// The passes that run.
class EnginePasses {
 public:
  bool on(EnginePassId pass) const { return !off_[static_cast<std::size_t>(pass)]; }
  void leave_out(EnginePassId pass) { off_.set(static_cast<std::size_t>(pass)); }

 private:
  std::bitset<kEnginePasses> off_;
};

// All but those named. Throws Error(usage) for a name that is none's.
EnginePasses passes_without(std::span<const std::string> names);

}  // namespace gpunn::inference
