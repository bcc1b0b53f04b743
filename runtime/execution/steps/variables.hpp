#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "execution/backend.hpp"
#include "graph/graph.hpp"

namespace gpunn::execution {

// Tensors, by name, that keep their content between steps and that step programs share: parameters, gradients,
// optimizer states, counters, tables, resident data.
class Variables {
 public:
  explicit Variables(Backend& backend);

  // Zeroed. A second call with the same name must ask for the same type.
  void* create(const std::string& name, const TensorType& type, graph::Storage storage);
  // The same for a short-lived variable of unplanned size: its memory is from the backend's pool, and drop() returns
  // it. No work on other streams than the backend's may still use it then.
  void* create_temporary(const std::string& name, const TensorType& type, graph::Storage storage);
  void drop(const std::string& name);
  // The other's memory under the same name, read by both: the backends must be of one memory domain, and the other
  // outlive this.
  void share(const std::string& name, const Variables& other);
  bool contains(const std::string& name) const;
  void* data(const std::string& name) const;  // throws Error where there is none
  const TensorType& type(const std::string& name) const;
  uint64_t bytes(graph::Storage storage) const;  // allocated for one kind

  // Blocking. Sizes must match.
  void write(const std::string& name, std::span<const std::byte> values);
  std::vector<std::byte> read(const std::string& name) const;

 private:
  struct Entry {
    TensorType type;
    graph::Storage storage;
    Buffer buffer;  // empty: the memory is another's
    void* data;
  };
  void* add(const std::string& name, const TensorType& type, graph::Storage storage, bool pooled);

  Backend& backend_;
  std::map<std::string, Entry> entries_;
};

}  // namespace gpunn::execution
