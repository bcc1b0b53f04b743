// CIFAR batches and tar archives that the tests write.
#pragma once

#include <array>
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "files.hpp"

namespace test {

constexpr std::size_t kCifarPixels = 3072;

// Records of CIFAR-10: labels count up from 0 to 9, over and over; every pixel of record i is i.
inline std::string cifar10_batch(int records, int first = 0) {
  std::string bytes;
  for (int i = first; i < first + records; ++i) {
    bytes += static_cast<char>(i % 10);
    bytes += std::string(kCifarPixels, static_cast<char>(i));
  }
  return bytes;
}

// Records of CIFAR-100: fine labels count up from 0 to 99, the coarse label is a fifth of that.
inline std::string cifar100_batch(int records) {
  std::string bytes;
  for (int i = 0; i < records; ++i) {
    bytes += static_cast<char>(i % 100 / 5);
    bytes += static_cast<char>(i % 100);
    for (int channel = 0; channel < 3; ++channel) bytes += std::string(1024, static_cast<char>(50 * channel + i));
  }
  return bytes;
}

using NamedFiles = std::vector<std::pair<std::string, std::string>>;

inline NamedFiles cifar10_files(int records = 20) {
  NamedFiles files;
  for (int i = 0; i < 5; ++i) {
    files.emplace_back("data_batch_" + std::to_string(i + 1) + ".bin", cifar10_batch(records, i * records));
  }
  files.emplace_back("test_batch.bin", cifar10_batch(records));
  return files;
}

inline void write_files(const fs::path& folder, const NamedFiles& files) {
  for (const auto& [name, bytes] : files) write_file(folder / name, bytes);
}

// A ustar archive; `folder` is in front of the names.
inline std::string tar(const std::string& folder, const NamedFiles& files) {
  std::string archive;
  for (const auto& [name, bytes] : files) {
    std::string header(512, '\0');
    const auto put = [&](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
    const auto octal = [](std::size_t value, int digits) {
      std::array<char, 32> text = {};
      std::snprintf(text.data(), text.size(), "%0*zo", digits, value);
      return std::string(text.data());
    };
    put(0, folder + name);
    put(100, "0000644");
    put(124, octal(bytes.size(), 11));
    put(148, std::string(8, ' '));
    put(156, "0");
    put(257, std::string("ustar\0"
                         "00",
                         8));
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    put(148, octal(sum, 6) + '\0');
    archive += header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
  }
  return archive + std::string(1024, '\0');
}

}  // namespace test
