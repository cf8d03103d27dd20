/** Finds a free port. */
export function findFreePort(): number {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
  const { port } = server
  void server.stop(true)
  return port ?? 0
}
