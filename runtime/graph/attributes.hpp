#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpunn::graph {

// An op's attribute struct of ops.h as a value, whichever struct it is.
class Attributes {
 public:
  Attributes() = default;

  // Sets struct_size.
  template <class T>
  static Attributes of(T attrs) {
    static_assert(std::is_trivially_copyable_v<T>);
    attrs.struct_size = sizeof(T);
    Attributes result;
    result.bytes_.resize(sizeof(T));
    std::memcpy(result.bytes_.data(), &attrs, sizeof(T));
    return result;
  }

  // A value from the bytes of such a struct. Sets struct_size.
  static Attributes of_struct(std::vector<std::byte> bytes) {
    Attributes result;
    result.bytes_ = std::move(bytes);
    const auto size = static_cast<uint32_t>(result.bytes_.size());
    if (size >= sizeof(size)) std::memcpy(result.bytes_.data(), &size, sizeof(size));
    return result;
  }

  // Members that are not there are 0.
  template <class T>
  T as() const {
    T attrs{};
    if (!bytes_.empty()) std::memcpy(&attrs, bytes_.data(), std::min(sizeof(T), bytes_.size()));
    attrs.struct_size = sizeof(T);
    return attrs;
  }

  const void* data() const { return bytes_.empty() ? nullptr : bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  bool operator==(const Attributes&) const = default;

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace gpunn::graph
