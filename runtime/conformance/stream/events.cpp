// What events order. Each check lets a stream work for a while before it writes what another stream reads. Memory is
// declared before the streams: where a check fails in the middle, they come to rest before it is freed.
#include <gpunn/error.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>

#include "conformance/abi/abi_checks.hpp"
#include "conformance/stream/ordering.hpp"

namespace gpunn::conformance {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kEventBytes = std::size_t{1} << 20U;
constexpr double kEventDelay = 20;  // milliseconds

std::string milliseconds_text(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f ms", value);
  return text;
}

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

// How long the device went on after the host had come back.
std::string lead_text(Clock::time_point enqueued, Clock::time_point done) {
  const double lead = milliseconds(done - enqueued);
  return lead > 1 ? "the device worked on for " + milliseconds_text(lead) + " after all was enqueued"
                  : "the device works while the host enqueues, so nothing could overtake";
}

RawMemory event_memory(const RawChain& chain) { return RawMemory(chain.bottom(), GPUNN_MEMORY_DEVICE, kEventBytes); }

// Stream A works for a while and then writes; B, told to wait for the event behind it, reads. `record_early`: the event
// was recorded once before.
std::string run_producer_and_consumer(const RawChain& chain, const Delay& delay, bool record_early) {
  const RawMemory source = event_memory(chain), middle = event_memory(chain), target = event_memory(chain);
  const StreamPair streams(chain);
  const RawEvent written(chain.top());
  std::string lead;
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<std::byte> sent = pattern(kEventBytes, round);
    source.write(sent);
    middle.write(std::vector<std::byte>(kEventBytes, std::byte{0xEE}));
    if (record_early) written.record(streams.a_top.get());
    delay.enqueue(streams.a, kEventDelay);
    streams.a.copy(middle, source);
    written.record(streams.a_top.get());
    written.make_wait(streams.b_top.get());
    streams.b.copy(target, middle);
    const auto enqueued = Clock::now();
    streams.b.synchronize();
    lead = lead_text(enqueued, Clock::now());
    std::vector<std::byte> received(kEventBytes);
    target.read(received);
    demand_equal(sent, received,
                 "in round " + std::to_string(round + 1) + " of " + std::to_string(kRounds) +
                     " stream B, which waits for an event recorded on stream A" +
                     (record_early ? " for the second time" : "") +
                     " behind a copy, read what was there before that copy");
    streams.a.synchronize();
  }
  return lead;
}

std::string check_wait(const RawChain& chain, const Delay& delay) {
  return run_producer_and_consumer(chain, delay, false);
}

std::string check_second_record(const RawChain& chain, const Delay& delay) {
  return run_producer_and_consumer(chain, delay, true);
}

// A writes into one place, B carries it away, A may write again: each must wait for the other.
std::string check_turns(const RawChain& chain, const Delay& delay) {
  constexpr int kTurns = 12;
  const RawMemory middle = event_memory(chain);
  std::vector<std::unique_ptr<RawMemory>> sources, targets;
  for (int i = 0; i < kTurns; ++i) {
    sources.push_back(std::make_unique<RawMemory>(chain.bottom(), GPUNN_MEMORY_DEVICE, kEventBytes));
    targets.push_back(std::make_unique<RawMemory>(chain.bottom(), GPUNN_MEMORY_DEVICE, kEventBytes));
    sources.back()->write(pattern(kEventBytes, i));
  }
  const StreamPair streams(chain);
  const RawEvent written(chain.top()), taken(chain.top());
  for (int i = 0; i < kTurns; ++i) {
    if (i > 0) taken.make_wait(streams.a_top.get());
    // Now one stream is the slower, then the other.
    delay.enqueue(i % 3 == 0 ? streams.a : streams.b, kEventDelay / 4);
    streams.a.copy(middle, *sources[static_cast<std::size_t>(i)]);
    written.record(streams.a_top.get());
    written.make_wait(streams.b_top.get());
    streams.b.copy(*targets[static_cast<std::size_t>(i)], middle);
    taken.record(streams.b_top.get());
  }
  const auto enqueued = Clock::now();
  streams.b.synchronize();
  std::string lead = lead_text(enqueued, Clock::now());
  streams.a.synchronize();
  for (int i = 0; i < kTurns; ++i) {
    std::vector<std::byte> received(kEventBytes);
    targets[static_cast<std::size_t>(i)]->read(received);
    demand_equal(pattern(kEventBytes, i), received,
                 "stream A wrote and stream B read by turns, each waiting for the other's event; turn " +
                     std::to_string(i + 1) + " of " + std::to_string(kTurns) + " went wrong");
  }
  return lead;
}

// The host waits for an event; what is behind it need not be done, what is before it must.
std::string check_host_wait(const RawChain& chain, const Delay& delay) {
  const RawMemory source = event_memory(chain), target = event_memory(chain);
  const StreamPair streams(chain);
  const RawEvent written(chain.top());
  const std::vector<std::byte> sent = pattern(kEventBytes, 3);
  source.write(sent);
  target.write(std::vector<std::byte>(kEventBytes, std::byte{0xEE}));
  delay.enqueue(streams.a, kEventDelay);
  streams.a.copy(target, source);
  written.record(streams.a_top.get());
  const auto enqueued = Clock::now();
  written.synchronize();
  std::string lead = lead_text(enqueued, Clock::now());
  std::vector<std::byte> received(kEventBytes);
  streams.b.copy(received.data(), target.data(), kEventBytes, GPUNN_DEVICE_TO_HOST);
  streams.b.synchronize();
  streams.a.synchronize();
  demand_equal(sent, received, "event_sync came back before the copy in front of the event was done");
  return lead;
}

std::string check_stream_wait(const RawChain& chain, const Delay& delay) {
  const RawMemory source = event_memory(chain), target = event_memory(chain);
  const StreamPair streams(chain);
  const std::vector<std::byte> sent = pattern(kEventBytes, 4);
  source.write(sent);
  target.write(std::vector<std::byte>(kEventBytes, std::byte{0xEE}));
  delay.enqueue(streams.a, kEventDelay);
  streams.a.copy(target, source);
  const auto enqueued = Clock::now();
  streams.a_top.synchronize();
  std::string lead = lead_text(enqueued, Clock::now());
  std::vector<std::byte> received(kEventBytes);
  streams.b.copy(received.data(), target.data(), kEventBytes, GPUNN_DEVICE_TO_HOST);
  streams.b.synchronize();
  demand_equal(sent, received, "stream_sync came back before the stream's last copy was done");
  return lead;
}

std::string check_elapsed(const RawChain& chain, const Delay& delay) {
  const StreamPair streams(chain);
  const RawEvent first(chain.top()), second(chain.top()), third(chain.top());
  const auto start = Clock::now();
  first.record(streams.a_top.get());
  delay.enqueue(streams.a, kEventDelay);
  second.record(streams.a_top.get());
  delay.enqueue(streams.a, kEventDelay / 2);
  third.record(streams.a_top.get());
  third.synchronize();
  const double host = milliseconds(Clock::now() - start);
  const double one = second.milliseconds_since(first), two = third.milliseconds_since(second),
               both = third.milliseconds_since(first), none = second.milliseconds_since(second);
  std::string found = "found " + milliseconds_text(one) + " from the first event to the second, " +
                      milliseconds_text(two) + " from there to the third, " + milliseconds_text(both) +
                      " from the first to the third and " + milliseconds_text(none) + " from one to itself, " +
                      milliseconds_text(host) + " on the host's clock";
  for (const double value : {one, two, both, none}) {
    demand(std::isfinite(value) && value >= 0, "expected times of 0 or more; " + found);
  }
  // Clocks of some devices tick in microseconds, and f32 has seven digits.
  const double grain = 0.01 + 1e-3 * both;
  demand(none <= grain, "expected no time between an event and itself; " + found);
  demand(std::abs(one + two - both) <= 2 * grain, "the parts don't add up to the whole; " + found);
  demand(both <= host * 1.05 + 1, "the device's clock runs ahead of the host's; " + found);
  demand(one > 0, "copies of many MiB took no time at all; " + found);
  return found;
}

}  // namespace

std::vector<StreamCheck> event_checks() {
  return {{"event_wait", "a stream waits for a slow one", check_wait},
          {"event_record", "a second record takes the place of the first", check_second_record},
          {"event_wait", "two streams take turns", check_turns},
          {"event_sync", "the host waits for an event", check_host_wait},
          {"stream_sync", "the host waits for a stream", check_stream_wait},
          {"event_elapsed", "times add up, on the device's clock and the host's", check_elapsed}};
}

}  // namespace gpunn::conformance
