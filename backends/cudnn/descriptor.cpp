#include "descriptor.hpp"

#include <string>

#include "cudnn_check.hpp"

namespace gpunn::cudnn {

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  check(cudnnBackendCreateDescriptor(type, &handle_), "making a cuDNN descriptor");
}

Descriptor::~Descriptor() {
  if (handle_ != nullptr) cudnnBackendDestroyDescriptor(handle_);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                     const void* values) {
  const cudnnStatus_t code = cudnnBackendSetAttribute(handle_, name, type, count, values);
  if (code != CUDNN_STATUS_SUCCESS) throw_cudnn(code, ("setting cuDNN attribute " + std::to_string(name)).c_str());
}

void Descriptor::set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values) {
  std::vector<cudnnBackendDescriptor_t> handles;
  handles.reserve(values.size());
  for (const Descriptor& value : values) handles.push_back(value.handle_);
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(handles.size()), handles.data());
}

void Descriptor::finalize() { check(cudnnBackendFinalize(handle_), "finalizing a cuDNN descriptor"); }

int64_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t capacity,
                        void* values) const {
  int64_t count = 0;
  const cudnnStatus_t code = cudnnBackendGetAttribute(handle_, name, type, capacity, &count, values);
  if (code != CUDNN_STATUS_SUCCESS) throw_cudnn(code, ("reading cuDNN attribute " + std::to_string(name)).c_str());
  return count;
}

int64_t Descriptor::get_integer(cudnnBackendAttributeName_t name) const {
  int64_t value = 0;
  get(name, CUDNN_TYPE_INT64, 1, &value);
  return value;
}

std::vector<Descriptor> Descriptor::get_descriptors(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                                    int64_t capacity) const {
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < capacity; ++i) handles.push_back(found.emplace_back(type).get());
  const int64_t count = get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, capacity, handles.data());
  while (static_cast<int64_t>(found.size()) > count) found.pop_back();
  return found;
}

}  // namespace gpunn::cudnn
