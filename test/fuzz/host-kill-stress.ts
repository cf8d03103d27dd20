import { Deployment } from '../e2e/support/deployment.ts'
import { runWorkerdKillStress } from './workerd-kill-stress.ts'

/** Kills per transfer; new transfers make a run cover starts and exits too. */
const KILLS_PER_TRANSFER = 50
const BYTES_PER_KILL = 2 * 1024 * 1024

export interface HostKillStressOptions {
  readonly seed: number
  /** Kills of workerd; the host is killed in the middle of every transfer, and between two. */
  readonly kills: number
  readonly onKill?: (done: number) => void
}

export interface HostKillStressResult {
  readonly kills: number
  readonly hostKills: number
  readonly bytesEachWay: number
  /** Times from the disconnect to the reattach, ascending. */
  readonly reattachMs: readonly number[]
}

/** Kills workerd repeatedly, and the host in between, during transfers that must deliver every byte exactly once. */
export async function runHostKillStress({
  seed,
  kills,
  onKill,
}: HostKillStressOptions): Promise<HostKillStressResult> {
  await using deployment = await Deployment.open()
  const reattachMs: number[] = []
  let done = 0
  let hostKills = 0
  let bytesEachWay = 0
  const crash = async (): Promise<void> => {
    hostKills += 1
    await deployment.killHost()
    await deployment.restart()
  }
  for (let transfer = 0; done < kills; transfer += 1) {
    const wanted = Math.min(KILLS_PER_TRANSFER, kills - done)
    let crashing: Promise<void> = Promise.resolve()
    const failed = Promise.withResolvers<never>()
    const before = done
    const run = runWorkerdKillStress({
      get host() {
        return deployment.host
      },
      sandbox: 'kills',
      seed: seed + transfer,
      kills: wanted,
      totalBytes: wanted * BYTES_PER_KILL,
      onKill: (count) => {
        done = before + count
        onKill?.(done)
        if (count === Math.ceil(wanted / 2)) {
          crashing = crash()
          crashing.catch(failed.reject)
        }
      },
    })
    const result = await Promise.race([run, failed.promise])
    await crashing
    if (result.kills !== wanted)
      throw new Error(`Killed ${result.kills} times of ${wanted}, seed ${seed + transfer}`)
    if (result.returned !== result.written)
      throw new Error(`The echo differs from the bytes written, seed ${seed + transfer}`)
    bytesEachWay += result.returnedBytes
    reattachMs.push(...result.reattachMs)
    await crash()
  }
  return { kills: done, hostKills, bytesEachWay, reattachMs: reattachMs.toSorted((a, b) => a - b) }
}
