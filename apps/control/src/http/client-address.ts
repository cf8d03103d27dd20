/** The network address that a request comes from, as the platform saw it; empty when it did not. Headers are not believed. */
export function addressOf(request: Request): string {
  const cf: unknown = Reflect.get(request, 'cf')
  const peer: unknown = typeof cf === 'object' && cf !== null ? Reflect.get(cf, 'clientIp') : undefined
  return typeof peer === 'string' ? withoutPort(peer) : ''
}

/** `127.0.0.1:8080` and `[::1]:8080` without their port. */
function withoutPort(peer: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*)):\d+$/.exec(peer) ?? []
  return bracketed ?? plain ?? peer
}
