/**
 * Sets `request.cf.clientIp`, where control reads the client's address; workerd sets it for its own sockets.
 * Cloudflare's edge sends the address in this header and overwrites any value from the client.
 */
export function withClientAddress(request: Request): Request {
  const clientIp = request.headers.get('cf-connecting-ip') ?? ''
  return new Request(request, { cf: { ...request.cf, clientIp } })
}
