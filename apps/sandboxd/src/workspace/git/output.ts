import { SandwireError } from '@sandwire/protocol'
import type { RunningTool } from '../tool.ts'
import { NulTokens } from './nul-tokens.ts'

/** Most of git's own words that are passed on. */
const MAX_SAID = 200

/** Reads at most so many bytes; git is ended when it has more to say. */
export async function readBytes(
  tool: RunningTool,
  maxBytes: number,
): Promise<{ readonly bytes: Buffer; readonly isCut: boolean }> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of tool.stdout) {
    parts.push(part)
    size += part.byteLength
    if (size > maxBytes) return { bytes: Buffer.concat(parts).subarray(0, maxBytes), isCut: true }
  }
  return { bytes: Buffer.concat(parts), isCut: false }
}

/** What is cut at NULs, one after the other. Whoever stops early ends git. */
export async function* readTokens(tool: RunningTool): AsyncGenerator<Uint8Array, void> {
  const tokens = new NulTokens()
  for await (const chunk of tool.stdout) {
    tokens.push(chunk)
    for (let token = tokens.next(); token !== undefined; token = tokens.next()) yield token
  }
}

/** A short answer, without the newline at its end. */
export async function readLine(tool: RunningTool): Promise<string> {
  const { bytes } = await readBytes(tool, 64 * 1024)
  return bytes.toString().replace(/\n$/, '')
}

/** Waits for the end of git. Throws `timed_out` and `git_failed`, the latter with what git says. */
export async function expectSuccess(tool: RunningTool, action: string): Promise<void> {
  const { code, isLate } = await tool.exited
  if (isLate) throw new SandwireError('timed_out', `${action}: git takes too long`)
  if (code !== 0) throw new SandwireError('git_failed', `${action}: ${sayWhy(await tool.stderr)}`)
}

/** The line of git's words that says why, printable: names in it may hold anything. */
function sayWhy(stderr: string): string {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '')
  const why = lines.find((line) => /^(fatal|error): /.test(line)) ?? lines[0] ?? 'git does not say why'
  return printable(why.replace(/^(fatal|error): /, '')).slice(0, MAX_SAID)
}

/** Text without characters that move, hide or turn others. */
function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?')
}
