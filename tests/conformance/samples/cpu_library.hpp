// The cpu plugin, loaded by a sample plugin that wants its kernels (SAMPLE_CPU_PLUGIN is its file).
#pragma once

#include <gpunn/plugin.hpp>

#include <mutex>
#include <string>
#include <vector>

#include <dlfcn.h>

namespace samples {

// A device and a stream of it. Its calls are serialised, as the contract wants.
class CpuLibrary {
 public:
  explicit CpuLibrary(const gpunn_device_options& options) {
    void* const library = dlopen(SAMPLE_CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw gpunn::plugin::Failure(GPUNN_INTERNAL, dlerror());
    const auto query = reinterpret_cast<gpunn_plugin_query_v1_fn>(dlsym(library, "gpunn_plugin_query_v1"));
    table_ = query(GPUNN_ABI_MAJOR, GPUNN_ABI_MINOR);
    gpunn_error error = no_error();
    require(table_->device_open(&options, &device_, &error), error);
    require(table_->stream_create(device_, &stream_, &error), error);
  }
  ~CpuLibrary() {
    table_->stream_destroy(stream_);
    table_->device_close(device_);
  }
  CpuLibrary(const CpuLibrary&) = delete;
  CpuLibrary& operator=(const CpuLibrary&) = delete;

  gpunn::plugin::Support query(const gpunn::plugin::OpDesc& desc) {
    gpunn_op_support support{};
    support.struct_size = sizeof(support);
    gpunn_error error = no_error();
    require(table_->op_query(device_, &desc.raw(), &support, &error), error);
    return {.score = support.score,
            .workspace_bytes = support.workspace_bytes,
            .flags = support.flags,
            .reason = support.reason};
  }
  gpunn_kernel* create(const gpunn::plugin::OpDesc& desc) {
    gpunn_kernel* kernel = nullptr;
    gpunn_error error = no_error();
    require(table_->op_create(device_, &desc.raw(), &kernel, &error), error);
    return kernel;
  }
  void run(gpunn_kernel* kernel, const gpunn_op_args& args) {
    const std::lock_guard lock(mutex_);
    gpunn_error error = no_error();
    require(table_->op_enqueue(kernel, stream_, &args, &error), error);
  }
  void release(gpunn_kernel* kernel) { table_->op_free(kernel); }

 private:
  static gpunn_error no_error() {
    gpunn_error error{};
    error.struct_size = sizeof(error);
    return error;
  }
  static void require(gpunn_status status, const gpunn_error& error) {
    if (status != GPUNN_OK) throw gpunn::plugin::Failure(status, error.message);
  }

  std::mutex mutex_;
  const gpunn_plugin* table_ = nullptr;
  gpunn_device* device_ = nullptr;
  gpunn_stream* stream_ = nullptr;
};

// The arguments of an enqueue as values, to be kept or changed.
class KeptArgs {
 public:
  explicit KeptArgs(const gpunn::plugin::OpArgs& args) {
    for (std::size_t i = 0; i < args.inputs(); ++i) tensors_.push_back(args.input(i));
    for (std::size_t i = 0; i < args.outputs(); ++i) tensors_.push_back(args.output(i));
    for (const gpunn_tensor& tensor : tensors_) pointers_.push_back(&tensor);
    args_.struct_size = sizeof(args_);
    args_.n_inputs = static_cast<uint32_t>(args.inputs());
    args_.n_outputs = static_cast<uint32_t>(args.outputs());
    args_.inputs = pointers_.data();
    args_.outputs = pointers_.data() + args.inputs();
    args_.workspace = args.workspace<void>();
    args_.workspace_bytes = UINT64_MAX;  // as many as the kernel asked for
  }
  KeptArgs(const KeptArgs&) = delete;
  KeptArgs& operator=(const KeptArgs&) = delete;
  const gpunn_op_args& get() const { return args_; }
  gpunn_tensor& input(std::size_t i) { return tensors_[i]; }

 private:
  std::vector<gpunn_tensor> tensors_;
  std::vector<const gpunn_tensor*> pointers_;
  gpunn_op_args args_{};
};

}  // namespace samples
