// Opening a chain of plugins on one device, and closing it.

#include <gpunn/error.hpp>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "execution/backend_impl.hpp"
#include "plugins/call.hpp"

namespace gpunn::execution {

namespace {

constexpr uint64_t kAbsurdAlignment = uint64_t{1} << 30;

// The least level that reaches standard error: that of GPUNN_LOG, by default warnings.
int32_t least_logged() {
  const char* given = std::getenv("GPUNN_LOG");
  const std::string_view name = given == nullptr ? "" : given;
  if (name == "debug") return GPUNN_LOG_DEBUG;
  return name == "info" ? GPUNN_LOG_INFO : GPUNN_LOG_WARNING;
}

void forward_log(void* context, int32_t level, const char* message) {
  if (message == nullptr) return;
  const auto& log = static_cast<const BackendOptions*>(context)->log;
  if (log) {
    plugins::guarded_void([&] { log(level, message); });
  } else if (level >= least_logged()) {
    std::fprintf(stderr, "gpunn: %s\n", message);
  }
}

template <std::size_t N>
void terminate(char (&text)[N]) {
  text[N - 1] = '\0';
}

std::string plugin_named(const Level& level) { return "plugin '" + level.plugin->name() + "'"; }

}  // namespace

void Backend::Impl::open(std::vector<std::shared_ptr<const plugins::Plugin>> chain) {
  const char* const given = std::getenv("GPUNN_POOL");
  pooling = given == nullptr || std::string_view(given) != "0";
  if (options.threads < 0) {
    throw Error("threads must be 0 (the backend's choice) or more, not " + std::to_string(options.threads),
                ExitCode::usage);
  }
  open_levels(std::move(chain));
  settle_domains();
  rank_levels();
  const std::vector<gpunn_stream*> streams = make_streams();
  for (std::size_t i = 0; i < levels.size(); ++i) levels[i].stream = streams[i];
}

void Backend::Impl::warn_once(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> told;
  const std::lock_guard lock(mutex);
  if (!text.empty() && told.insert(text).second) forward_log(&options, GPUNN_LOG_WARNING, text.c_str());
}

// A plugin that is in the chain only as an alternative is left out if it can't be opened or has memory of its own.
void Backend::Impl::open_levels(std::vector<std::shared_ptr<const plugins::Plugin>> chain) {
  levels.reserve(chain.size());
  std::string needed = chain.front()->name();
  for (auto& plugin : chain) {
    const bool is_needed = plugin->name() == needed;
    if (is_needed) needed = plugin->base();
    levels.push_back({.plugin = std::move(plugin)});
    Level& level = levels.back();
    try {
      open_device(level);
      if (is_needed || std::string_view(level.info.memory_domain) == levels.front().info.memory_domain) continue;
    } catch (const Error&) {
      if (is_needed) throw;
    }
    if (level.device != nullptr) plugins::guarded_void([&] { level.table().device_close(level.device); });
    levels.pop_back();
  }
}

// Plugins that name each other as alternatives share the rank of the highest.
void Backend::Impl::rank_levels() {
  const auto names = [](const Level& level, const Level& other) {
    return std::ranges::count(level.plugin->alternatives(), other.plugin->name()) != 0;
  };
  bool choice = false;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    levels[i].rank = static_cast<int>(i);
    for (std::size_t above = 0; options.alternatives && above < i && levels[i].rank == static_cast<int>(i); ++above) {
      if (names(levels[above], levels[i])) levels[i].rank = levels[above].rank;
    }
    choice = choice || levels[i].rank != static_cast<int>(i);
  }
  if (!choice || options.deterministic) return;
  std::vector<std::filesystem::path> files;
  for (const Level& level : levels) files.push_back(level.plugin->path());
  kernel_times = std::make_unique<KernelTimes>(
      std::move(files), std::string(bottom().info.name) + ", driver " + static_cast<const char*>(bottom().info.driver));
}

void Backend::Impl::open_device(Level& level) {
  if (options.device < 0 || options.device >= level.plugin->devices()) {
    throw Error("backend '" + level.plugin->name() + "' has " + std::to_string(level.plugin->devices()) +
                    (level.plugin->devices() == 1 ? " device" : " devices") + ", counted from 0; device " +
                    std::to_string(options.device) + " was asked for",
                ExitCode::missing);
  }
  gpunn_device_options request{};
  request.struct_size = sizeof(request);
  request.index = options.device;
  request.host_threads = options.threads;
  request.log = forward_log;
  request.log_context = &options;
  plugins::call(*level.plugin, "device_open",
                [&](gpunn_error* error) { return level.table().device_open(&request, &level.device, error); });
  if (level.device == nullptr) throw Error(plugin_named(level) + ": device_open said OK but gave no device");

  level.info.struct_size = sizeof(level.info);
  plugins::call(*level.plugin, "device_info",
                [&](gpunn_error* error) { return level.table().device_info(level.device, &level.info, error); });
  level.info.struct_size = sizeof(level.info);
  terminate(level.info.name);
  terminate(level.info.driver);
  terminate(level.info.memory_domain);
  plugins::guarded_void([&] {
    level.concurrent =
        level.table().extension != nullptr && level.table().extension(GPUNN_EXTENSION_CONCURRENT_STREAMS) != nullptr;
  });
  open_subgraphs(level);
  if (level.info.memory_domain[0] == '\0') throw Error(plugin_named(level) + ": device_info gave no memory domain");
  const uint64_t of_tensors = level.info.tensor_alignment;
  if (of_tensors != 0 && (!std::has_single_bit(of_tensors) || of_tensors > level.info.alignment)) {
    throw Error(plugin_named(level) + ": device_info gave a tensor_alignment of " + std::to_string(of_tensors) +
                " bytes; expected 0 or a power of two up to its alignment");
  }
  if (!std::has_single_bit(level.info.alignment) || level.info.alignment > kAbsurdAlignment) {
    throw Error(plugin_named(level) + ": device_info gave an alignment of " + std::to_string(level.info.alignment) +
                " bytes; expected a power of two up to " + std::to_string(kAbsurdAlignment));
  }
}

void Backend::Impl::open_subgraphs(Level& level) {
  const void* found = nullptr;
  plugins::guarded_void([&] {
    if (level.table().extension != nullptr) found = level.table().extension(GPUNN_EXTENSION_SUBGRAPH);
  });
  if (found == nullptr) return;
  const auto* const table = static_cast<const gpunn_subgraph_extension*>(found);
  if (table->struct_size < sizeof(gpunn_subgraph_extension) || table->query == nullptr || table->create == nullptr ||
      table->enqueue == nullptr || table->destroy == nullptr) {
    throw Error(plugin_named(level) + ": the table of its extension " GPUNN_EXTENSION_SUBGRAPH " is not complete");
  }
  level.subgraphs = table;
}

void Backend::Impl::settle_domains() {
  const std::string domain = bottom().info.memory_domain;
  for (Level& level : levels) {
    if (domain != level.info.memory_domain) {
      if (!options.host_copies) {
        throw Error(plugin_named(level) + " works in memory domain '" + level.info.memory_domain + "', but its base '" +
                        bottom().plugin->name() + "' in '" + domain +
                        "'; its ops can run only with their tensors copied through the host, which is slow: "
                        "`host_copies: true` in the experiment, or --set host_copies=true, allows it",
                    ExitCode::missing);
      }
      level.host_copies = std::make_unique<HostCopies>(level, bottom(), synchronizations, allocations);
      level.subgraphs = nullptr;  // only ops are run with copies
      continue;
    }
    if (level.info.alignment > bottom().info.alignment) {
      throw Error(plugin_named(level) + " needs memory aligned to " + std::to_string(level.info.alignment) +
                      " bytes, but its base '" + bottom().plugin->name() + "' aligns to " +
                      std::to_string(bottom().info.alignment),
                  ExitCode::missing);
    }
  }
}

std::vector<gpunn_stream*> Backend::Impl::make_streams() const {
  const Level& owner = bottom();
  std::vector<gpunn_stream*> streams(levels.size(), nullptr);
  try {
    plugins::call(*owner.plugin, "stream_create", [&](gpunn_error* error) {
      return owner.table().stream_create(owner.device, &streams.back(), error);
    });
    if (streams.back() == nullptr) throw Error(plugin_named(owner) + ": stream_create said OK but gave no stream");
    if (streams.size() == 1) return streams;

    void* native = nullptr;
    plugins::call(*owner.plugin, "stream_native",
                  [&](gpunn_error* error) { return owner.table().stream_native(streams.back(), &native, error); });
    for (std::size_t i = 0; i + 1 < streams.size(); ++i) {
      const Level& level = levels[i];
      const bool own = level.host_copies != nullptr;
      const char* const call = own ? "stream_create" : "stream_wrap";
      plugins::call(*level.plugin, call, [&](gpunn_error* error) {
        return own ? level.table().stream_create(level.device, &streams[i], error)
                   : level.table().stream_wrap(level.device, native, &streams[i], error);
      });
      if (streams[i] == nullptr) throw Error(plugin_named(level) + ": " + call + " said OK but gave no stream");
    }
  } catch (...) {
    destroy_streams(streams);
    throw;
  }
  return streams;
}

std::vector<gpunn_stream*> Backend::Impl::wrap_stream(void* native) const {
  std::vector<gpunn_stream*> streams(levels.size(), nullptr);
  try {
    for (std::size_t i = 0; i < levels.size(); ++i) {
      plugins::call(*levels[i].plugin, "stream_wrap", [&](gpunn_error* error) {
        return levels[i].table().stream_wrap(levels[i].device, native, &streams[i], error);
      });
      if (streams[i] == nullptr) throw Error(plugin_named(levels[i]) + ": stream_wrap said OK but gave no stream");
    }
  } catch (...) {
    destroy_streams(streams);
    throw;
  }
  return streams;
}

void Backend::Impl::destroy_streams(const std::vector<gpunn_stream*>& streams) const noexcept {
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (streams[i] != nullptr) plugins::guarded_void([&] { levels[i].table().stream_destroy(streams[i]); });
  }
}

void Backend::Impl::sync(const std::string& after) {
  ++synchronizations;
  plugins::call(
      *bottom().plugin, [&] { return after.empty() ? std::string("stream_sync") : "stream_sync after " + after; },
      [&](gpunn_error* error) { return bottom().table().stream_sync(bottom().stream, error); });
}

Backend::Impl::~Impl() {
  // While their devices are open.
  communicator = nullptr;
  for (Level& level : levels) level.ranks.reset();
  if (levels.empty()) return;
  if (bottom().stream != nullptr) {
    plugins::guarded([&](gpunn_error* error) { return bottom().table().stream_sync(bottom().stream, error); });
  }
  pool.trim();
  for (Level& level : levels) level.host_copies.reset();
  for (const Level& level : levels) {
    if (level.stream != nullptr) plugins::guarded_void([&] { level.table().stream_destroy(level.stream); });
  }
  for (const Level& level : levels) {
    if (level.device != nullptr) plugins::guarded_void([&] { level.table().device_close(level.device); });
  }
}

}  // namespace gpunn::execution
