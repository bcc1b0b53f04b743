// `gpunn data pack`: packed_folder.hpp says what is written.
#include <gpunn/data.hpp>
#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include <zlib.h>

#include "common/files.hpp"
#include "common/parallel.hpp"
#include "common/text.hpp"
#include "data/folders/folder_scan.hpp"
#include "data/images/image.hpp"
#include "data/pack/files.hpp"
#include "data/pack/packed_folder.hpp"

namespace gpunn {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kFilesInMemory = 64;  // that are read at the same time
constexpr std::size_t kMostNamed = 5;
constexpr std::size_t kMostFileBytes = std::size_t{1} << 30;
constexpr std::size_t kContentAlignment = 8;

std::vector<fs::path> files_to_pack(const fs::path& folder) {
  std::vector<fs::path> files;
  data::files::each_file_beneath(folder, [&](const fs::path& file) { files.push_back(file); });
  std::ranges::sort(files, {}, [&](const fs::path& file) { return file.lexically_relative(folder).string(); });
  return files;
}

// A binary PGM or PPM, which holds pixels as they are.
std::string as_pixels(data::Image image, int64_t shorter_side) {
  const int64_t shorter = std::min(image.height, image.width);
  if (shorter_side > 0 && shorter > shorter_side) {
    const auto scaled = [&](int64_t side) {
      return std::max<int64_t>(1, (side * shorter_side + shorter / 2) / shorter);
    };
    image = data::resize(image, scaled(image.height), scaled(image.width));
  }
  std::string text = (image.channels == 1 ? "P5 " : "P6 ") + std::to_string(image.width) + ' ' +
                     std::to_string(image.height) + " 255\n";
  text.append(reinterpret_cast<const char*>(image.values.data()), image.values.size());
  return text;
}

// The content of some files, as they are packed; of images that can't be read what is wrong, in their place.
struct PackedContent {
  std::string bytes, wrong;
};

PackedContent content_of(const fs::path& file, const PackOptions& options) {
  PackedContent content;
  try {
    content.bytes = data::files::read_text(file, kMostFileBytes);
    if (!data::is_image_name(file)) return content;
    data::Image image =
        data::decode_image({reinterpret_cast<const uint8_t*>(content.bytes.data()), content.bytes.size()}, file);
    if (options.decoded) content.bytes = as_pixels(std::move(image), options.shorter_side);
  } catch (const Error& error) {
    if (!data::is_image_name(file)) throw;
    content = {.bytes = {}, .wrong = error.what()};
  }
  return content;
}

void require_no_boxes(const std::vector<fs::path>& files) {
  const auto annotation = std::ranges::find_if(
      files, [](const fs::path& file) { return file.extension() == ".xml" || file.extension() == ".json"; });
  if (annotation == files.end()) return;
  throw Error(annotation->string() +
                  ": boxes are in pixels of the images as they are, which --decoded turns and scales; pack the folder "
                  "without it",
              ExitCode::usage);
}

}  // namespace

PackReport pack_folder(const fs::path& folder, const fs::path& file, const PackOptions& options) {
  if (file.extension() != data::kPackEnding) {
    throw Error(file.string() + ": a packed folder ends in " + data::kPackEnding + ", by which it is known",
                ExitCode::usage);
  }
  if (options.shorter_side > 0 && !options.decoded) {
    throw Error("--shorter-side scales the pixels of decoded images; give --decoded, too", ExitCode::usage);
  }
  if (!is_folder(folder)) throw Error(folder.string() + ": no such folder", ExitCode::missing);
  const fs::path beside = fs::weakly_canonical(file).lexically_relative(fs::weakly_canonical(folder));
  if (!beside.empty() && *beside.begin() != "..") {
    throw Error(file.string() + " is in the folder that it is to pack; write it elsewhere", ExitCode::usage);
  }
  const std::vector<fs::path> files = files_to_pack(folder);
  if (files.empty()) throw Error(folder.string() + ": there are no files to pack", ExitCode::missing);
  if (options.decoded) require_no_boxes(files);
  require_writable(file);
  const data::FolderListing listing = data::folder_listing(folder);
  data::PackIndex index{
      .folder = fs::canonical(folder).string(), .folder_files = listing.files, .folder_crc = listing.crc, .files = {}};
  PackReport report;
  LongWork work("packing " + folder.filename().string(), files.size());
  write_atomically(file, [&](OutputFile& out) {
    out.write(data::kPackMagic);
    uint64_t at = data::kPackMagic.size();
    for (std::size_t first = 0; first < files.size(); first += kFilesInMemory) {
      std::vector<PackedContent> contents(std::min(kFilesInMemory, files.size() - first));
      for_row_stretches(std::ssize(contents), 1, [&](int64_t begin, int64_t end) {
        for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i, work.advance()) {
          contents[i] = content_of(files[first + i], options);
        }
      });
      for (std::size_t i = 0; i < contents.size(); ++i) {
        if (!contents[i].wrong.empty()) {
          report.left_out.push_back(contents[i].wrong);
          continue;
        }
        std::string& bytes = contents[i].bytes;
        const auto crc = static_cast<uint32_t>(
            crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<z_size_t>(bytes.size())));
        index.files.push_back({.path = files[first + i].lexically_relative(folder).string(),
                               .offset = at,
                               .bytes = bytes.size(),
                               .crc = crc});
        report.images += data::is_image_name(files[first + i]);
        bytes.resize((bytes.size() + kContentAlignment - 1) / kContentAlignment * kContentAlignment);
        out.write(bytes);
        at += bytes.size();
      }
    }
    if (!report.left_out.empty() && !options.leave_out_damaged) {
      std::vector<std::string> first(
          report.left_out.begin(),
          report.left_out.begin() + std::min(std::ssize(report.left_out), static_cast<std::ptrdiff_t>(kMostNamed)));
      throw Error(folder.string() + ": " + std::to_string(report.left_out.size()) + " of " +
                  std::to_string(files.size()) + " files can't be read as images:\n  " + join(first, "\n  ") +
                  (report.left_out.size() > kMostNamed ? "\n  ..." : "") +
                  "\nTake them away, or leave them out with --leave-out-damaged");
    }
    const std::string encoded = data::encode_index(index);
    out.write(encoded);
    out.write(data::encode_trailer(at, encoded));
    report.bytes = at + encoded.size() + data::kPackTrailerBytes;
  });
  report.files = std::ssize(index.files);
  return report;
}

}  // namespace gpunn
