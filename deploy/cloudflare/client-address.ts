/**
 * Puts the client's address where control looks for it: `request.cf.clientIp`, which workerd sets on a socket of its own.
 * On Cloudflare the edge tells it in this header, and replaces whatever a client sent under the name.
 */
export function withClientAddress(request: Request): Request {
  const clientIp = request.headers.get('cf-connecting-ip') ?? ''
  return new Request(request, { cf: { ...request.cf, clientIp } })
}
