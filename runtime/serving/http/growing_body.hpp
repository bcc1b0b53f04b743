#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/optional.hpp>

namespace gpunn::serving {

// A body in memory, for Beast. It grows with what arrives: a client that announces a large body and sends nothing takes
// no memory.
struct GrowingBody {
  using value_type = std::string;

  class reader {
   public:
    template <bool isRequest, class Fields>
    reader(boost::beast::http::header<isRequest, Fields>& /*header*/, value_type& body) : body_(body) {}

    void init(const boost::optional<std::uint64_t>& length, boost::system::error_code& error) {
      constexpr std::uint64_t kReserved = std::uint64_t{1} << 20;
      if (length) body_.reserve(static_cast<std::size_t>(std::min(*length, kReserved)));
      error = {};
    }

    template <class Buffers>
    std::size_t put(const Buffers& buffers, boost::system::error_code& error) {
      std::size_t bytes = 0;
      error = {};
      for (auto it = boost::asio::buffer_sequence_begin(buffers); it != boost::asio::buffer_sequence_end(buffers);
           ++it) {
        const boost::asio::const_buffer buffer = *it;
        try {
          body_.append(static_cast<const char*>(buffer.data()), buffer.size());
        } catch (const std::bad_alloc&) {
          error = boost::beast::http::error::buffer_overflow;
          return bytes;
        }
        bytes += buffer.size();
      }
      return bytes;
    }

    void finish(boost::system::error_code& error) { error = {}; }

   private:
    value_type& body_;
  };
};

}  // namespace gpunn::serving
