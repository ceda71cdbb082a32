#include "base/tls.hpp"

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace rondo::tls {
namespace {

constexpr size_t longest_record = SSL3_RT_MAX_PLAIN_LENGTH;
// Of the caller's bytes that one write seals: enough for a call of the kernel, and they stay in the cache.
constexpr size_t most_sealed = 64 << 10;
// With every part in a record of its own, a change of the key and an alert.
constexpr size_t out_bytes = most_sealed + (4 << 10);
constexpr size_t read_ahead_bytes = 64 << 10;
// Both sides hold one key: its name says nothing.
constexpr std::string_view key_name = "rondo";
constexpr std::array<unsigned char, 2> cipher{0x13, 0x01};  // TLS_AES_128_GCM_SHA256

template <auto release>
struct Releaser {
  template <class T>
  void operator()(T* object) const noexcept {
    release(object);
  }
};
template <class T, auto release>
using Owned = std::unique_ptr<T, Releaser<release>>;

std::string last_error() {
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  return reason ? reason : "unknown reason";
}

}  // namespace

Key derive_key(std::string_view secret, std::span<const std::byte> salt, std::span<const std::byte> info) {
  const Owned<EVP_KDF, EVP_KDF_free> kdf(EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_HKDF, nullptr));
  const Owned<EVP_KDF_CTX, EVP_KDF_CTX_free> context(kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr);
  const auto octets = [](const char* name, const void* data, size_t bytes) {
    static const char nothing = 0;  // a null pointer is refused
    return OSSL_PARAM_construct_octet_string(name, const_cast<void*>(bytes > 0 ? data : &nothing), bytes);
  };
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[]{OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
                                octets(OSSL_KDF_PARAM_KEY, secret.data(), secret.size()),
                                octets(OSSL_KDF_PARAM_SALT, salt.data(), salt.size()),
                                octets(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
                                OSSL_PARAM_construct_end()};
  Key key;
  // Nothing else can fail; a key of zeros must never be used.
  if (!context || EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(key.data()), key.size(),
                                 parameters) != 1)
    throw std::bad_alloc();
  return key;
}

// What OpenSSL needs for one connection; the key is in `shared`, a resumable session that both sides pretend to have.
struct Session::Library {
  Owned<SSL_CTX, SSL_CTX_free> context;
  Owned<BIO_METHOD, BIO_meth_free> method;
  Owned<SSL_SESSION, SSL_SESSION_free> shared;
  Owned<SSL, SSL_free> ssl;

  bool make(Session& session, Side side, const Key& key);
  bool make_context(Side side);
  bool make_shared_session(const Key& key);

  // OpenSSL's own socket would raise SIGPIPE, and make a call for every record.
  static int append(BIO* bio, const char* data, int bytes) noexcept;
  static long control(BIO*, int command, long, void*) noexcept { return command == BIO_CTRL_FLUSH; }
  static int offer(SSL* ssl, const EVP_MD*, const unsigned char** name, size_t* bytes, SSL_SESSION** shared);
  static int find(SSL* ssl, const unsigned char* name, size_t bytes, SSL_SESSION** shared);
};

int Session::Library::append(BIO* bio, const char* data, int bytes) noexcept {
  auto& session = *static_cast<Session*>(BIO_get_data(bio));
  if (size_t(bytes) > out_bytes - session.sealed_) return -1;
  std::memcpy(session.out_.get() + session.sealed_, data, size_t(bytes));
  session.sealed_ += size_t(bytes);
  return bytes;
}

int Session::Library::offer(SSL* ssl, const EVP_MD*, const unsigned char** name, size_t* bytes,
                            SSL_SESSION** shared) {
  auto& library = *static_cast<Library*>(SSL_get_app_data(ssl));
  *name = reinterpret_cast<const unsigned char*>(key_name.data());
  *bytes = key_name.size();
  SSL_SESSION_up_ref(library.shared.get());
  *shared = library.shared.get();
  return 1;
}

int Session::Library::find(SSL* ssl, const unsigned char* name, size_t bytes, SSL_SESSION** shared) {
  auto& library = *static_cast<Library*>(SSL_get_app_data(ssl));
  *shared = nullptr;
  if (std::string_view(reinterpret_cast<const char*>(name), bytes) != key_name) return 1;
  SSL_SESSION_up_ref(library.shared.get());
  *shared = library.shared.get();
  return 1;
}

bool Session::Library::make_context(Side side) {
  context.reset(SSL_CTX_new(side == Side::dialler ? TLS_client_method() : TLS_server_method()));
  if (!context) return false;
  SSL_CTX* const made = context.get();
  // No tickets: nothing is ever resumed, and nothing but the ranks' own bytes comes after the handshake.
  SSL_CTX_set_options(made, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_clear_options(made, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
  SSL_CTX_set_num_tickets(made, 0);
  SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(made, 1);
  SSL_CTX_set_default_read_buffer_len(made, read_ahead_bytes);
  SSL_CTX_set_psk_use_session_callback(made, offer);
  SSL_CTX_set_psk_find_session_callback(made, find);
  return SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_max_proto_version(made, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_ciphersuites(made, "TLS_AES_128_GCM_SHA256") == 1 &&
         SSL_CTX_set1_groups_list(made, "X25519:P-256") == 1;
}

bool Session::Library::make_shared_session(const Key& key) {
  shared.reset(SSL_SESSION_new());
  const SSL_CIPHER* const chosen = SSL_CIPHER_find(ssl.get(), cipher.data());
  return shared && chosen && SSL_SESSION_set_cipher(shared.get(), chosen) == 1 &&
         SSL_SESSION_set_protocol_version(shared.get(), TLS1_3_VERSION) == 1 &&
         SSL_SESSION_set1_master_key(shared.get(), reinterpret_cast<const unsigned char*>(key.data()),
                                     key.size()) == 1;
}

bool Session::Library::make(Session& session, Side side, const Key& key) {
  if (!make_context(side)) return false;
  ssl.reset(SSL_new(context.get()));
  method.reset(BIO_meth_new(BIO_TYPE_SOURCE_SINK, "rondo"));
  if (!ssl || !method || !make_shared_session(key)) return false;
  BIO_meth_set_write(method.get(), append);
  BIO_meth_set_ctrl(method.get(), control);
  BIO* const out = BIO_new(method.get());
  if (!out) return false;
  BIO_set_data(out, &session);
  BIO_set_init(out, 1);
  SSL_set0_wbio(ssl.get(), out);
  BIO* const in = BIO_new_socket(session.socket_, BIO_NOCLOSE);
  if (!in) return false;
  SSL_set0_rbio(ssl.get(), in);
  SSL_set_app_data(ssl.get(), this);
  side == Side::dialler ? SSL_set_connect_state(ssl.get()) : SSL_set_accept_state(ssl.get());
  return true;
}

Session::Session(int socket, uint64_t records)
    : socket_(socket),
      records_per_key_(records),
      library_(std::make_unique<Library>()),
      out_(new std::byte[out_bytes]) {}

Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::make(int socket, Side side, const Key& key, uint64_t records) {
  ERR_clear_error();
  std::unique_ptr<Session> session(new Session(socket, records));
  if (session->library_->make(*session, side, key)) return session;
  return Error{ErrorCode::system, "cannot make a TLS session: " + last_error()};
}

Session::Step Session::handshake() noexcept {
  SSL* const ssl = library_->ssl.get();
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(ssl);
  const Moved found = result == 1 ? Moved{} : outcome(result);
  if (found.error != 0) failure_ = found.error == altered_bytes ? last_error() : std::strerror(found.error);
  if (found.ended) failure_ = "the connection was closed";
  Moved moved;
  flush(moved);
  if (moved.error != 0) failure_ = std::strerror(moved.error);
  if (!failure_.empty()) return Step::failed;
  if (unsent()) return Step::wants_write;
  return result == 1 ? Step::done : Step::wants_read;
}

Moved Session::write(std::span<const iovec> parts) noexcept {
  Moved moved;
  flush(moved);
  if (unsent() || moved.error != 0) return moved;
  for (const iovec& part : parts) {
    const size_t bytes = std::min(part.iov_len, most_sealed - moved.bytes);
    if (bytes == 0) continue;
    if (!seal(static_cast<const std::byte*>(part.iov_base), bytes)) {
      moved.error = EPROTO;
      return moved;
    }
    moved.bytes += bytes;
    if (bytes < part.iov_len) break;
  }
  flush(moved);
  return moved;
}

// Cannot block: there is room for it.
bool Session::seal(const std::byte* data, size_t bytes) noexcept {
  SSL* const ssl = library_->ssl.get();
  ERR_clear_error();
  const uint64_t records = (bytes + longest_record - 1) / longest_record;
  if (records_ + records > records_per_key_) {
    if (SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1) return false;
    records_ = 0;
  }
  records_ += records;
  size_t written = 0;
  return SSL_write_ex(ssl, data, bytes, &written) == 1 && written == bytes;
}

void Session::flush(Moved& moved) noexcept {
  while (unsent() && moved.error == 0) {
    iovec part{out_.get() + sent_, sealed_ - sent_};
    const Moved taken = write_some(socket_, std::span(&part, 1));
    if (taken.bytes == 0 && taken.error == 0) return;
    sent_ += taken.bytes;
    moved.error = taken.error;
  }
  if (!unsent()) sent_ = sealed_ = 0;
}

Moved Session::read(std::span<const iovec> parts) noexcept {
  if (ending_.ended || ending_.error != 0) return ending_;
  Moved moved;
  for (const iovec& part : parts) {
    for (size_t filled = 0; filled < part.iov_len;) {
      size_t got = 0;
      ERR_clear_error();  // of this thread's other business: OpenSSL would take it for its own
      errno = 0;
      const int result = SSL_read_ex(library_->ssl.get(), static_cast<std::byte*>(part.iov_base) + filled,
                                     part.iov_len - filled, &got);
      if (result != 1) {
        ending_ = outcome(result);
        return moved.bytes > 0 ? moved : ending_;
      }
      filled += got;
      moved.bytes += got;
    }
  }
  return moved;
}

// What it means that OpenSSL has not done what it was asked to.
Moved Session::outcome(int result) const noexcept {
  const int cause = errno;
  switch (SSL_get_error(library_->ssl.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return {};
    case SSL_ERROR_ZERO_RETURN:
      return {.ended = true};
    case SSL_ERROR_SYSCALL:
      return {.error = cause != 0 ? cause : ECONNRESET};
    default:
      return {.error = altered_bytes};
  }
}

}  // namespace rondo::tls
