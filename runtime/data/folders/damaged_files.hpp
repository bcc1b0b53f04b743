#pragma once

#include <gpunn/damaged.hpp>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace gpunn::data {

// Decodes images that are read in number, and gathers the damaged files among them. A damaged file never ends the work
// at once: the caller hears of all of them together.
class DamagedFiles {
 public:
  explicit DamagedFiles(Damaged policy) : policy_(policy) {}
  Damaged policy() const { return policy_; }

  // Calls `decode`, which reads the file. It gets a string for the damage if the file may be repaired, else nullptr.
  // Returns false if the file is damaged and to be left out. Any thread may call.
  bool sound(const std::filesystem::path& file, const std::function<void(std::string* damage)>& decode);

  // Decodes all files.
  void search(const std::vector<std::filesystem::path>& files);

  // All that were found, sorted by their names.
  std::vector<DamagedImage> found() const;
  // Throws Error with the damaged ones if the policy is Damaged::error; else adds notes. The images lie in `place`.
  void settle(const std::string& place, std::vector<std::string>& notes) const;
  // For images that are answered one by one: calls the listener, or throws Error for Damaged::error without one.
  void report(const DamagedListener& listener) const;

 private:
  const Damaged policy_;
  mutable std::mutex mutex_;
  std::vector<DamagedImage> found_;
  std::atomic<std::size_t> all_{0};  // files that were read
};

// Decodes all files, and throws Error if any is damaged.
void refuse_damaged(const std::vector<std::filesystem::path>& files, const std::string& place);

}  // namespace gpunn::data
