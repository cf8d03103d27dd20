import { existsSync, readFileSync } from 'node:fs'
import { type DockerResult, hasDocker, readGateway, runDocker } from './docker.ts'
import { OwnEngine } from './own-engine.ts'
import { commandsRunning } from './processes.ts'

/** A Docker engine for tests. */
export interface Engine extends AsyncDisposable {
  /** Address of its socket, in the format of `DOCKER_HOST` and workerd. */
  readonly host: string
  /** True when it was started for this run and has no other users. */
  readonly isOwn: boolean
  /** Address of this machine as containers see it. */
  readonly gateway: string
  /** Runs a Docker CLI command and returns its stdout; throws when it fails. */
  readonly docker: (...args: string[]) => Promise<string>
  /** The same for commands that may fail. */
  readonly tryDocker: (args: readonly string[], input?: string) => Promise<DockerResult>
}

const DEFAULT_HOST = 'unix:///var/run/docker.sock'
/** Bits of `CapEff`. */
const NET_ADMIN = 12n
const SYS_ADMIN = 21n

/** Environment variable with the reason why the test run could not start an engine. */
export const ENGINE_PROBLEM_VARIABLE = 'SANDWIRE_ENGINE_PROBLEM'

/** The existing engine, if any: at `DOCKER_HOST`, otherwise the machine's. */
function givenHost(): string | undefined {
  const named = process.env['DOCKER_HOST']
  if (named !== undefined && named !== '') return named
  return existsSync('/var/run/docker.sock') && readGateway(DEFAULT_HOST) !== undefined
    ? DEFAULT_HOST
    : undefined
}

/** Why tests cannot use an engine, in one line; undefined when they can. */
export function findEngineProblem(): string | undefined {
  const known = process.env[ENGINE_PROBLEM_VARIABLE]
  if (known !== undefined && known !== '') return known
  if (process.platform !== 'linux') return 'workerd runs containers for these tests on Linux only'
  if (process.getuid?.() !== 0) return 'making a base image needs root'
  if (!hasDocker()) return 'docker.io is not installed (npm test installs it with apt, as root)'
  if (Bun.which('debootstrap') === null) return 'debootstrap is not installed (npm test installs it with apt)'
  if (Bun.which('iptables') === null) return 'iptables is not installed (npm test installs it with apt)'
  const given = givenHost()
  return given === undefined ? findOwnEngineProblem() : findGivenEngineProblem(given)
}

function findGivenEngineProblem(host: string): string | undefined {
  if (!host.startsWith('unix://')) return `workerd needs an engine on a unix socket, not at "${host}"`
  const gateway = readGateway(host)
  if (gateway === undefined) return `the engine at "${host}" does not answer`
  return gateway === ''
    ? `the bridge of the engine at "${host}" has no gateway: start it with --bip`
    : undefined
}

function findOwnEngineProblem(): string | undefined {
  if (Bun.which('ip') === null) return 'iproute2 is not installed (npm test installs it with apt)'
  if (Bun.which('dockerd') === null) return 'dockerd is not installed (npm test installs docker.io with apt)'
  const effective = BigInt(
    `0x${/^CapEff:\s*(\w+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'}`,
  )
  for (const bit of [NET_ADMIN, SYS_ADMIN])
    if (((effective >> bit) & 1n) === 0n) return 'root may not mount or set up networks here'
  for (const name of ['bridge', 'overlay'])
    if (!existsSync(`/sys/module/${name}`) && !Bun.spawnSync(['modprobe', name]).success)
      return `the kernel has no ${name}`
  return commandsRunning().includes('dockerd')
    ? 'another dockerd has the bridge: give its socket as DOCKER_HOST'
    : undefined
}

/**
 * Opens an engine for tests. An existing one is used and left running, because two cannot share a bridge; otherwise
 * one is started and later removed, except for its images in `.cache`, so that a base image is built once per machine.
 */
export async function startEngine(): Promise<Engine> {
  const given = givenHost()
  const own = given === undefined ? await OwnEngine.start() : undefined
  const host = own?.host ?? given ?? DEFAULT_HOST
  const tryDocker: Engine['tryDocker'] = (args, input) => runDocker(host, args, input)
  return {
    host,
    isOwn: own !== undefined,
    gateway: readGateway(host) ?? '',
    tryDocker,
    docker: async (...args) => {
      const { code, stdout, stderr } = await tryDocker(args)
      if (code !== 0)
        throw new Error(`docker ${args.slice(0, 3).join(' ')} …: exit ${code}: ${stderr.trim()}`)
      return stdout
    },
    [Symbol.asyncDispose]: async () => own?.stop(),
  }
}
