#include "runs/event_file.hpp"

#include <bit>

#include <boost/crc.hpp>

namespace gpunn::training::event_file {

namespace {

// Protobuf's wire format: a key, which is the field's number and how its value is coded, and the value.
enum class Wire : uint32_t { varint = 0, eight_bytes = 1, text = 2, four_bytes = 5 };

template <class T>
void put_little_endian(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>((value >> (8 * i)) & 0xFF);
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

void put_key(std::string& out, uint32_t field, Wire wire) {
  put_varint(out, (field << 3) | static_cast<uint32_t>(wire));
}

void put_text(std::string& out, uint32_t field, std::string_view text) {
  put_key(out, field, Wire::text);
  put_varint(out, text.size());
  out += text;
}

// Fields of Event.
constexpr uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
// Of Summary, and of its values.
constexpr uint32_t kValue = 1, kTag = 1, kSimpleValue = 2;
// Of SessionLog.
constexpr uint32_t kStatus = 1;
constexpr uint64_t kStarted = 1;

std::string event(double time, int64_t step) {
  std::string message;
  put_key(message, kWallTime, Wire::eight_bytes);
  put_little_endian(message, std::bit_cast<uint64_t>(time));
  if (step != 0) {
    put_key(message, kStep, Wire::varint);
    put_varint(message, static_cast<uint64_t>(step));
  }
  return message;
}

}  // namespace

uint32_t masked_crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return std::rotr(static_cast<uint32_t>(crc.checksum()), 15) + 0xA282EAD8U;
}

std::string record(std::string_view message) {
  std::string out;
  put_little_endian(out, uint64_t{message.size()});
  put_little_endian(out, masked_crc32c(out));
  out += message;
  put_little_endian(out, masked_crc32c(message));
  return out;
}

std::string version_record(double time) {
  std::string message = event(time, 0);
  put_text(message, kFileVersion, "brain.Event:2");
  return record(message);
}

std::string start_record(double time, int64_t step) {
  std::string log;
  put_key(log, kStatus, Wire::varint);
  put_varint(log, kStarted);
  std::string message = event(time, step);
  put_text(message, kSessionLog, log);
  return record(message);
}

std::string scalar_record(double time, int64_t step, const std::vector<Scalar>& scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    put_text(value, kTag, scalar.tag);
    put_key(value, kSimpleValue, Wire::four_bytes);
    put_little_endian(value, std::bit_cast<uint32_t>(static_cast<float>(scalar.value)));
    put_text(summary, kValue, value);
  }
  std::string message = event(time, step);
  put_text(message, kSummary, summary);
  return record(message);
}

}  // namespace gpunn::training::event_file
