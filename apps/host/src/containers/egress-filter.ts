import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { FoundContainer } from './docker.ts'

/** A packet filter chain that guards workerd's egress listeners; each listener belongs to one sandbox. */
export interface FilterPlan {
  readonly chain: string
  /** Address of the listeners: the gateway of the engine's default network. */
  readonly gateway: string
  /** Ports of the listeners. */
  readonly ports: readonly number[]
  /** The egress sidecars of this data folder's sandboxes. */
  readonly sidecars: readonly Sidecar[]
}

export interface Sidecar {
  readonly address: string
  /** The listener that it was created for. After a restart of workerd it has another one, which is not known here. */
  readonly port: number | undefined
}

const LISTEN = '0A'
const POLL_MS = 500
/** How often sidecars are listed while the listeners stay the same: the address of one that ended may be assigned again. */
const REFRESH_POLLS = 20
/** How long they are listed at every poll after a listener appeared; its sidecar is created later. */
const SETTLE_POLLS = 60

/** The chain of a data folder; chains have at most 28 characters. */
export function chainOf(dataFolder: string): string {
  return `SANDWIRE-${createHash('sha256').update(dataFolder).digest('hex').slice(0, 12)}`
}

/** Describes the running egress sidecars. */
export function sidecarsOf(containers: readonly FoundContainer[]): readonly Sidecar[] {
  return containers.flatMap(({ name, isRunning, address, command }) => {
    if (!isRunning || address === '' || !name.endsWith('-proxy')) return []
    const port = /--http-egress-port (\d+)/.exec(command)?.[1]
    return [{ address, port: port === undefined ? undefined : Number(port) }]
  })
}

/**
 * The rules as `iptables-restore --noflush` reads them. A listener accepts connections from its sandbox's sidecar; one whose sidecar is
 * not known, from the sidecars without a known listener. Sidecars let a sandbox connect to its own listener only. Others get no answer, so that
 * a sidecar that is not listed yet connects at its next attempt.
 */
export function formatRules({ chain, gateway, ports, sidecars }: FilterPlan): string {
  const unknown = sidecars.filter(({ port }) => port === undefined || !ports.includes(port))
  const rules = ports.flatMap((port) => {
    const own = sidecars.filter((each) => each.port === port)
    const accepted = (own.length > 0 ? own : unknown).map(({ address }) => address)
    const match = `-A ${chain} -p tcp -d ${gateway} --dport ${port}`
    return [...accepted.map((address) => `${match} -s ${address} -j RETURN`), `${match} -j DROP`]
  })
  return ['*filter', `:${chain} - [0:0]`, ...rules, 'COMMIT', ''].join('\n')
}

function socketsOf(pid: number): ReadonlySet<string> {
  const folder = `/proc/${pid}/fd`
  const links = readdirSync(folder).map((fd) => {
    try {
      return readlinkSync(`${folder}/${fd}`)
    } catch {
      // Closed meanwhile.
      return ''
    }
  })
  return new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []))
}

/** TCP ports on which a process listens at an IPv4 address; none when the process has ended. */
export function listeningPorts(pid: number, address: string): readonly number[] {
  try {
    const wanted = Buffer.from(address.split('.').map(Number).toReversed()).toString('hex').toUpperCase()
    const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1)
    const found = rows.flatMap((row) => {
      const fields = row.trim().split(/\s+/)
      const [local = '', port = ''] = (fields[1] ?? '').split(':')
      return local === wanted && fields[3] === LISTEN ? [{ port, inode: fields[9] ?? '' }] : []
    })
    if (found.length === 0) return []
    const sockets = socketsOf(pid)
    return found
      .filter(({ inode }) => sockets.has(inode))
      .map(({ port }) => Number.parseInt(port, 16))
      .toSorted((one, other) => one - other)
  } catch {
    // The process ended meanwhile.
    return []
  }
}

function run(command: string, args: readonly string[], input = ''): boolean {
  try {
    return Bun.spawnSync([command, '-w', '5', ...args], {
      stdin: Buffer.from(input),
      stdout: 'ignore',
      stderr: 'ignore',
    }).success
  } catch {
    // Not installed.
    return false
  }
}

export interface EgressFilterOptions {
  readonly dataFolder: string
  readonly gateway: string
  readonly workerdPid: () => number | undefined
  readonly listContainers: () => Promise<readonly FoundContainer[]>
  readonly onFailure: (error: unknown) => void
}

/** Keeps the chain of a data folder up to date while it is open. Needs root and iptables. */
export class EgressFilter implements Disposable {
  readonly #options: EgressFilterOptions
  readonly #jump: readonly string[]
  readonly #timer: Timer
  #ports = ''
  #rules = ''
  #polls = 0
  #isBusy = false

  private constructor(options: EgressFilterOptions) {
    this.#options = options
    this.#jump = ['INPUT', '-p', 'tcp', '-d', options.gateway, '-j', chainOf(options.dataFolder)]
    this.#timer = setInterval(() => void this.#poll(), POLL_MS)
    this.#timer.unref()
  }

  /** Undefined when this machine's packet filter cannot be changed. */
  static open(options: EgressFilterOptions): EgressFilter | undefined {
    const chain = chainOf(options.dataFolder)
    const plan = { chain, gateway: options.gateway, ports: [], sidecars: [] }
    if (!run('iptables-restore', ['--noflush'], formatRules(plan))) return undefined
    const filter = new EgressFilter(options)
    // A killed host leaves its rule.
    if (run('iptables', ['-C', ...filter.#jump]) || run('iptables', ['-I', ...filter.#jump])) return filter
    filter[Symbol.dispose]()
    return undefined
  }

  [Symbol.dispose](): void {
    const chain = chainOf(this.#options.dataFolder)
    clearInterval(this.#timer)
    run('iptables', ['-D', ...this.#jump])
    run('iptables', ['-F', chain])
    run('iptables', ['-X', chain])
  }

  async #poll(): Promise<void> {
    const { dataFolder, gateway, workerdPid, listContainers, onFailure } = this.#options
    const pid = workerdPid()
    if (this.#isBusy || pid === undefined) return
    const ports = listeningPorts(pid, gateway)
    this.#polls = ports.join() === this.#ports ? this.#polls + 1 : 0
    this.#ports = ports.join()
    const isDue = this.#polls < SETTLE_POLLS || this.#polls % REFRESH_POLLS === 0
    if (!isDue || (ports.length === 0 && this.#polls > 0)) return
    this.#isBusy = true
    try {
      const sidecars = sidecarsOf(await listContainers())
      const rules = formatRules({ chain: chainOf(dataFolder), gateway, ports, sidecars })
      if (rules === this.#rules) return
      if (!run('iptables-restore', ['--noflush'], rules)) throw new Error('iptables-restore failed')
      this.#rules = rules
    } catch (error) {
      onFailure(error)
    } finally {
      this.#isBusy = false
    }
  }
}
