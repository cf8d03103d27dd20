import { readFileSync } from 'node:fs'
import { cpus, loadavg, release } from 'node:os'

/** Describes the machine in one line. */
export function describeMachine(): string {
  const processors = cpus()
  const model = processors[0]?.model.trim() ?? 'unknown processor'
  const memory = /^MemTotal:\s+(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? '0'
  const load = loadavg().map((value) => value.toFixed(1))
  return [
    `${processors.length} × ${model}`,
    `${Math.round(Number(memory) / 1024 / 1024)} GiB`,
    `Linux ${release()}`,
    `Bun ${Bun.version}`,
    `load ${load.join(' ')} at the start`,
  ].join(', ')
}
