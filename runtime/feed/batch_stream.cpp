#include "feed/batch_stream.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>

namespace gpunn::training {

namespace {

std::size_t place(int64_t number) { return static_cast<std::size_t>(number); }

std::vector<execution::Event> make_events(execution::Backend& backend, std::size_t count) {
  std::vector<execution::Event> events;
  for (std::size_t i = 0; i < count; ++i) events.push_back(backend.make_event());
  return events;
}

execution::Buffer pinned(execution::Backend& backend, uint64_t bytes) {
  execution::Buffer buffer = backend.allocate(bytes, GPUNN_MEMORY_PINNED);
  std::memset(buffer.data(), 0, bytes);
  return buffer;
}

}  // namespace

BatchStream::BatchStream(execution::Backend& backend, execution::Variables& variables, const SplitType& type,
                         BatchFill batch_fill, execution::Profiler* profiler)
    : backend_(backend),
      fill_(std::move(batch_fill)),
      ring_(type.ring.value()),
      row_bytes_(ring_.samples.bytes() / place(ring_.slots() * ring_.batch)),
      fields_(type.fields),
      device_samples_(variables.create(type.samples_variable(), ring_.samples, graph::Storage::data)),
      device_rows_(variables.create(type.ring_variable(), ring_.rows, graph::Storage::data)),
      pinned_samples_(pinned(backend, ring_.samples.bytes())),
      pinned_rows_(pinned(backend, ring_.rows.bytes())),
      copying_(make_events(backend, kGroups)),
      copied_(make_events(backend, kGroups)),
      computed_(make_events(backend, kGroups)),
      copies_(backend),
      profiler_(profiler),
      loader_(kGroups, [this](int64_t group, std::size_t buffer) { fill(group, buffer); }) {
  backend_.synchronize();  // the ring was zeroed on a stream that the copies don't wait for
  if (profiler_ != nullptr) profiler_row_ = profiler_->add_stream("copies of batches to the device");
}

BatchStream::~BatchStream() {
  try {
    drain();
  } catch (const std::exception&) {  // a lost device uses nothing
  }
}

// On the loader's thread.
void BatchStream::fill(int64_t group, std::size_t buffer) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < ring_.group; ++i) {
    const int64_t slot = static_cast<int64_t>(buffer) * ring_.group + i;
    auto* const words = static_cast<int32_t*>(pinned_rows_.data()) + slot * ring_.words();
    auto* const samples = static_cast<std::byte*>(pinned_samples_.data()) + place(slot * ring_.batch) * row_bytes_;
    BatchRoom room{.samples = {samples, place(ring_.batch) * row_bytes_}, .fields = {}};
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      auto* const at = reinterpret_cast<std::byte*>(words + ring_.fields_at[f]);
      room.fields.emplace_back(at, fields_[f].rows(ring_.batch).bytes());
    }
    const auto [count, all] = fill_(group * ring_.group + i, room);
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      std::ranges::fill(room.fields[f].subspan(place(count) * fields_[f].row.bytes()), std::byte{0});
    }
    const std::span<int32_t> index(words + ring_.index_at, place(ring_.batch));
    std::iota(index.begin(), index.begin() + count, static_cast<int32_t>(slot * ring_.batch));
    std::fill(index.begin() + count, index.end(), -1);
    words[ring_.count_at] = static_cast<int32_t>(count);
    words[ring_.all_at] = static_cast<int32_t>(all);
    samples_ += count;
  }
  filling_nanoseconds_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
}

LoaderCounts BatchStream::counts() const {
  return {.samples = samples_,
          .filling_seconds = static_cast<double>(filling_nanoseconds_) * 1e-9,
          .waited_seconds = waited_seconds_};
}

// The device is first let finish what it has: what it waits is what is left.
void BatchStream::wait_for_loader(int64_t group) {
  if (loader_.filled(group)) return;
  backend_.synchronize();
  const auto start = std::chrono::steady_clock::now();
  loader_.wait_for(group);
  waited_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void BatchStream::drain() {
  if (!running_) return;
  running_ = false;
  backend_.synchronize();
  copies_.synchronize();
  for (; released_ < uploaded_; ++released_) tell_profiler(released_);
}

void BatchStream::seek(int64_t first, int64_t end) {
  drain();
  next_ = first;
  end_ = end;
}

void BatchStream::start() {
  first_ = uploaded_ = awaited_ = released_ = consumed_ = next_ / ring_.group;
  loader_.start(first_, (end_ + ring_.group - 1) / ring_.group);
  running_ = true;
}

void BatchStream::upload_next() {
  const std::size_t which = place(uploaded_) % kGroups;
  const auto copy = [&](void* to, const execution::Buffer& from) {
    const uint64_t bytes = from.bytes() / kGroups;
    const uint64_t offset = which * bytes;
    copies_.upload(static_cast<std::byte*>(to) + offset, static_cast<const std::byte*>(from.data()) + offset, bytes);
  };
  if (uploaded_ - BatchRing::kGroups >= first_) copies_.wait_for(computed_[which]);
  in_profile_[which] = profiler_ != nullptr && profiler_->recording();
  copies_.record(copying_[which]);
  copy(device_samples_, pinned_samples_);
  copy(device_rows_, pinned_rows_);
  copies_.record(copied_[which]);
  ++uploaded_;
}

void BatchStream::upload_filled() {
  while (may_upload() && loader_.filled(uploaded_)) upload_next();
}

// When the group's copy is done.
void BatchStream::tell_profiler(int64_t group) {
  const std::size_t which = place(group) % kGroups;
  if (!std::exchange(in_profile_[which], false)) return;
  const int64_t first = group * ring_.group;
  profiler_->add_span(
      profiler_row_, "batches of steps " + std::to_string(first + 1) + " to " + std::to_string(first + ring_.group),
      copying_[which], copied_[which], static_cast<double>(pinned_samples_.bytes() + pinned_rows_.bytes()) / kGroups);
}

void BatchStream::before(int64_t steps) {
  if (steps < 1 || steps > ring_.group) {
    throw Error("a launch of " + std::to_string(steps) + " streamed steps; expected 1 to " +
                std::to_string(ring_.group));
  }
  if (!running_) start();
  launching_ = next_ + steps;
  upload_filled();
  for (const int64_t last = (launching_ - 1) / ring_.group; awaited_ <= last; ++awaited_) {
    if (uploaded_ <= awaited_) {
      wait_for_loader(awaited_);
      upload_next();
    }
    backend_.wait_for(copied_[place(awaited_) % kGroups]);
  }
}

void BatchStream::after() {
  next_ = launching_;
  for (; consumed_ < next_ / ring_.group; ++consumed_) computed_[place(consumed_) % kGroups].record();
  // Only now, when the device has work to go on with, is the host held.
  for (; released_ < awaited_; ++released_) {
    copied_[place(released_) % kGroups].synchronize();
    tell_profiler(released_);
    loader_.release();
  }
  upload_filled();
}

}  // namespace gpunn::training
