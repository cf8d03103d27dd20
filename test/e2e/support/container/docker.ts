/** Result of a Docker CLI command. */
export interface DockerResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Debian's own CLI comes first: it matches its engine's version and does not need BuildKit. */
const CLIENT_PATH = `/usr/bin:${process.env['PATH'] ?? ''}`

/** Environment that makes `docker` use this engine. */
export function dockerEnv(host: string): Record<string, string | undefined> {
  return { ...process.env, PATH: CLIENT_PATH, DOCKER_HOST: host, DOCKER_BUILDKIT: '0' }
}

export function hasDocker(): boolean {
  return Bun.which('docker', { PATH: CLIENT_PATH }) !== null
}

/** Runs a Docker CLI command and returns its result. */
export async function runDocker(host: string, args: readonly string[], input = ''): Promise<DockerResult> {
  const child = Bun.spawn(['docker', ...args], {
    env: dockerEnv(host),
    stdin: Buffer.from(input),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, stdout, stderr }
}

/** Gateway of the engine's default network, which connects workerd and containers; undefined when no engine responds. */
export function readGateway(host: string): string | undefined {
  const format = '{{range .IPAM.Config}}{{.Gateway}}{{end}}'
  const child = Bun.spawnSync(['docker', 'network', 'inspect', 'bridge', '--format', format], {
    env: dockerEnv(host),
    stderr: 'ignore',
  })
  return child.success ? child.stdout.toString().trim() : undefined
}
