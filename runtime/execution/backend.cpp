#include "execution/backend.hpp"

#include <gpunn/error.hpp>

#include <utility>

#include "common/text.hpp"
#include "execution/backend_impl.hpp"
#include "plugins/call.hpp"

namespace gpunn::execution {

Backend::Backend(const plugins::PluginRegistry& registry, const std::string& name, const BackendOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->options = options;
  impl_->open(
      registry.chain(name, options.alternatives ? plugins::Alternatives::included : plugins::Alternatives::left_out));
  for (const Level& level : impl_->levels) impl_->warn_once(registry.notice(*level.plugin));
  want_kernels(options.kernels);
}

Backend::~Backend() = default;

std::string Backend::name() const { return impl_->levels.front().plugin->name(); }

std::vector<std::string> Backend::chain() const {
  std::vector<std::string> names;
  for (const Level& level : impl_->levels) names.push_back(level.plugin->name());
  return names;
}

std::vector<std::string> Backend::versions() const {
  std::vector<std::string> versions;
  for (const Level& level : impl_->levels) {
    const char* const version = level.table().version;
    versions.emplace_back(version == nullptr ? "" : version);
  }
  return versions;
}

const gpunn_device_info& Backend::info() const { return impl_->bottom().info; }

bool Backend::can_capture() const { return impl_->bottom().plugin->can_capture(); }

bool Backend::can_capture(int level) const {
  const bool on_host = std::string_view(impl_->bottom().info.memory_domain) == "host";
  return can_capture() && (!on_host || level + 1 == static_cast<int>(impl_->levels.size()));
}

bool Backend::concurrent(int level) const { return impl_->levels.at(static_cast<std::size_t>(level)).concurrent; }

uint64_t Backend::tensor_alignment(int level) const {
  const gpunn_device_info& info = impl_->levels.at(static_cast<std::size_t>(level)).info;
  return info.tensor_alignment != 0 ? info.tensor_alignment : info.alignment;
}

int Backend::rank(int level) const { return impl_->levels.at(static_cast<std::size_t>(level)).rank; }

KernelTimes* Backend::kernel_times() const { return impl_->kernel_times.get(); }

const BackendOptions& Backend::options() const { return impl_->options; }

std::string Backend::notice() const {
  std::string text;
  for (const Level& level : impl_->levels) {
    if (level.host_copies == nullptr) continue;
    text += (text.empty() ? "WARNING: " : "; ") + ("'" + level.plugin->name()) + "' works in memory domain '" +
            level.info.memory_domain + "', '" + impl_->bottom().plugin->name() + "' in '" +
            impl_->bottom().info.memory_domain + "': the tensors of each op that '" + level.plugin->name() +
            "' runs are copied through the host, as host_copies allows, and no step with such an op is captured";
  }
  return text.empty() ? text : text + ".";
}

uint64_t Backend::allocated_bytes() const { return impl_->allocated_bytes; }

int64_t Backend::allocations() const { return impl_->allocations; }

int64_t Backend::synchronizations() const { return impl_->synchronizations; }

namespace {

void enqueue_copy(const Level& level, void* destination, const void* source, uint64_t bytes, int32_t direction,
                  const char* what) {
  plugins::call(
      *level.plugin, [&] { return "copy of " + human_bytes(bytes) + " " + what; },
      [&](gpunn_error* error) {
        return level.table().copy(level.stream, destination, source, bytes, direction, error);
      });
}

}  // namespace

void Backend::upload(void* device, const void* host, uint64_t bytes) {
  if (bytes == 0) return;
  enqueue_upload(device, host, bytes);
  impl_->sync("a copy to the device");
}

void Backend::download(void* host, const void* device, uint64_t bytes) {
  if (bytes == 0) return;
  enqueue_download(host, device, bytes);
  impl_->sync("a copy from the device");
}

void Backend::enqueue_upload(void* device, const void* pinned, uint64_t bytes) {
  enqueue_copy(impl_->bottom(), device, pinned, bytes, GPUNN_HOST_TO_DEVICE, "to the device");
}

void Backend::enqueue_download(void* pinned, const void* device, uint64_t bytes) {
  enqueue_copy(impl_->bottom(), pinned, device, bytes, GPUNN_DEVICE_TO_HOST, "from the device");
}

void Backend::fill(void* device, uint8_t value, uint64_t bytes) {
  if (bytes == 0) return;
  const Level& level = impl_->bottom();
  plugins::call(
      *level.plugin, [&] { return "fill of " + human_bytes(bytes); },
      [&](gpunn_error* error) { return level.table().fill(level.stream, device, value, bytes, error); });
}

void Backend::copy(void* to, const void* from, uint64_t bytes) {
  if (bytes == 0) return;
  enqueue_copy(impl_->bottom(), to, from, bytes, GPUNN_DEVICE_TO_DEVICE, "within the device");
}

void Backend::synchronize() { impl_->sync({}); }

}  // namespace gpunn::execution
