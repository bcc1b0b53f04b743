#include "plugins/loader.hpp"

// With std::filesystem Boost.DLL is header-only.
#define BOOST_DLL_USE_STD_FS
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include <boost/dll/shared_library.hpp>
#include <dlfcn.h>

#include "plugins/elf.hpp"
#include "plugins/file_id.hpp"

namespace gpunn::plugins {

namespace {

// The loader says everything in words. What is wrong with the file itself is told apart from what it needs.
PluginStatus status_of(const std::string& text) {
  for (const char* own_fault : {"file too short", "invalid ELF header", "wrong ELF class", "cannot dynamically load",
                                "ELF load command", "object file has no", "cannot read file data"}) {
    if (text.find(own_fault) != std::string::npos) return PluginStatus::not_a_plugin;
  }
  return PluginStatus::dependency_missing;
}

// What the user can do about it, where the loader's words leave that open.
std::string remedy(const std::string& text) {
  if (text.find("cannot open shared object file") != std::string::npos) {
    return "; install that library, or name its folder in LD_LIBRARY_PATH";
  }
  if (text.find("undefined symbol") != std::string::npos) {
    return "; link the plugin with the library that has the symbol";
  }
  return "";
}

// Holds a library until the process ends and gives its handle. Nothing is ever destroyed: threads, exit handlers and
// TLS of a plugin may outlive any owner.
void* keep(std::unique_ptr<boost::dll::shared_library> library) {
  static auto* const mutex = new std::mutex;
  static auto* const kept = new std::vector<std::unique_ptr<boost::dll::shared_library>>;
  const std::lock_guard lock(*mutex);
  kept->push_back(std::move(library));
  return kept->back()->native();
}

}  // namespace

void* Library::symbol(const char* name) const { return handle == nullptr ? nullptr : dlsym(handle, name); }

Library load_library(const std::filesystem::path& file) {
  if (std::string reason = why_not_loadable(file); !reason.empty()) {
    return {PluginStatus::not_a_plugin, std::move(reason), nullptr};
  }
  // Boost.DLL would hand back the program itself.
  if (file_id(file) == file_id("/proc/self/exe")) {
    return {PluginStatus::not_a_plugin, "this is the running program", nullptr};
  }
  try {
    auto library = std::make_unique<boost::dll::shared_library>();
    std::error_code error;
    dlerror();
    library->load(std::filesystem::absolute(file), error,
                  boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
    if (library->is_loaded()) return {PluginStatus::ok, "", keep(std::move(library))};
    // Boost's code is always "bad file descriptor"; the loader's text is still there.
    const char* text = dlerror();
    const std::string detail = text != nullptr ? text : error.message();
    return {status_of(detail), detail + remedy(detail), nullptr};
  } catch (const std::exception& exception) {
    return {PluginStatus::not_a_plugin, exception.what(), nullptr};
  }
}

}  // namespace gpunn::plugins
