// A descriptor of cuDNN's graph API: a set of attributes that is filled and finalized, and that other descriptors then
// use.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <cudnn.h>

namespace gpunn::cudnn {

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  cudnnBackendDescriptor_t get() const { return handle_; }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* values);
  // Sets one value of an enumeration, a float or a bool, with its attribute type.
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    set(name, type, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, int64_t value) { set(name, CUDNN_TYPE_INT64, 1, &value); }
  void set(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
    set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.handle_);
  }
  void set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values);

  void finalize();

  // Reads at most `capacity` values of the attribute and returns how many there were.
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t capacity, void* values) const;
  int64_t get_integer(cudnnBackendAttributeName_t name) const;
  // Reads at most `capacity` descriptors. cuDNN fills existing ones, so this makes `capacity` of them and drops those
  // that stay empty.
  std::vector<Descriptor> get_descriptors(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                          int64_t capacity) const;

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

}  // namespace gpunn::cudnn
