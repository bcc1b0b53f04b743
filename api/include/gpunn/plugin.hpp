// C++ wrappers over abi.h for plugin authors; header-only, needs C++20 and nothing else.
//
// A plugin derives Backend and Device (HostDevice, if it computes on the host), registers its kernels in the device's
// constructor and exports one line:
//
//   extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
//     return gpunn::plugin::export_backend<MyBackend>(major, minor);
//   }
//
// Exceptions may be thrown anywhere: trampolines turn them into a status and its text.
#pragma once

#include <gpunn/kernel.hpp>
#include <gpunn/op_shapes.hpp>

#include <memory>
#include <string>

namespace gpunn::plugin {

// Why tensors or attributes contradict the op's row in op_list.inc; empty if they fit.
inline std::string misfit_of(const OpDesc& desc) {
  try {
    ops::require_declared(desc);
    return {};
  } catch (const ops::Misfit& misfit) {
    return misfit.what();
  }
}

// Whether the memory order of the images does not matter, as long as it is the same in all of them: a kernel can work
// on one element after the other, or on tensors of any strides.
inline bool is_order_free(const OpDesc& desc) {
  const auto found = ops::all().find(desc.op());
  if (found == ops::all().end()) return false;
  const ops::Signature& signature = found->second.signature;
  if (!signature.elementwise) return signature.strided;
  const int64_t elements = element_count(desc.output(0));
  return !any_tensor(desc, [elements](const gpunn_tensor& tensor) {
    const int64_t own = element_count(tensor);
    return own != 1 && own != elements;
  });
}

inline Support Device::answer(const KernelFactory& factory, const OpDesc& desc) {
  if (!factory.half && has_half(desc)) return Support::no("its tensors must be f32, not bf16 or f16");
  if (!factory.channels_last && !is_order_free(desc) && has_channels_last(desc)) {
    return Support::no("its images must be packed row-major, not channels-last");
  }
  Support support;
  try {
    support = factory.query(desc);
  } catch (const Refusal& refusal) {
    return Support::no(refusal.what());
  }
  const bool unfit = desc.require_deterministic() && (support.flags & GPUNN_OP_DETERMINISTIC) == 0;
  if (support.score > 0 && unfit) return Support::no("no deterministic kernel at this shape");
  return support;
}

inline Device::Choice Device::choose(const OpDesc& desc) const {
  const std::string_view wanted = desc.kernel();
  Choice best{nullptr, none(desc)};
  const auto [first, last] = factories_.equal_range(desc.op());
  if (first == last) return best;
  if (const std::string misfit = misfit_of(desc); !misfit.empty()) return {nullptr, Support::no(misfit)};
  for (auto i = first; i != last; ++i) {
    if (wanted.empty() ? i->second.only_by_name : i->second.name != wanted) continue;
    Support support = answer(i->second, desc);
    const bool usable = support.score > 0;
    if (best.factory == nullptr ? usable || !support.reason.empty() : support.score > best.support.score) {
      best = {usable ? &i->second : nullptr, std::move(support)};
    }
  }
  return best;
}

inline std::string Device::kernels(const OpDesc& desc) const {
  std::string names;
  if (!misfit_of(desc).empty()) return names;
  const auto [first, last] = factories_.equal_range(desc.op());
  for (auto i = first; i != last; ++i) {
    const std::string& name = i->second.name;
    if (name.empty() || answer(i->second, desc).score <= 0) continue;
    if (("," + names + ",").find("," + name + ",") != std::string::npos) continue;
    if (names.size() + name.size() + 2 > sizeof(gpunn_op_support::kernels)) break;  // whole names only
    names += (names.empty() ? "" : ",") + name;
  }
  return names;
}

// Devices are opened by index; `probe` returns how many there are or throws Failure(GPUNN_NO_DEVICE, why).
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;
  virtual const char* version() const = 0;
  virtual const char* build() const { return ""; }
  virtual const char* base() const { return nullptr; }
  virtual int priority() const { return 0; }
  virtual bool can_capture() const { return false; }
  virtual int probe() = 0;
  virtual std::unique_ptr<Device> open(const gpunn_device_options& options) = 0;
  // Whether kernels may run at the same time on several streams, and a capture follows events to other streams:
  // GPUNN_EXTENSION_CONCURRENT_STREAMS.
  virtual bool concurrent_streams() const { return false; }
  // Names of plugins, with commas between them, whose kernels may run in place of this one's where they are faster:
  // GPUNN_EXTENSION_ALTERNATIVES. nullptr: none.
  virtual const char* alternatives() const { return nullptr; }
  virtual const void* extension(const char* /*name*/) { return nullptr; }
  virtual void shutdown() {}
};

}  // namespace gpunn::plugin

#include <gpunn/plugin_host.hpp>
#include <gpunn/plugin_table.hpp>
