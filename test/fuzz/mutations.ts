import { encodeFrame, type FrameSpec, type Random } from '@sandwire/testing'

/** Fragments that often break decoders: prototypes, number limits, control characters, depth, lone surrogates. */
const TOKENS: readonly string[] = [
  '"__proto__":{"type":"take"},',
  '"constructor":{},',
  'null',
  'true',
  '[]',
  '{}',
  '-1',
  '0.5',
  '1e999',
  '9007199254740993',
  '"\\u0000"',
  '"\\ud800"',
  '\u202e',
  '\0',
  '\r\n',
  '%00',
  '%',
  '&',
  '=',
  '..',
  '/',
  '['.repeat(2_000),
  'x'.repeat(5_000),
]

/** Replacement values for a field of a message. */
const VALUES: readonly unknown[] = [
  null,
  true,
  '',
  'x',
  'SIGKILL',
  '__proto__',
  0,
  1,
  -1,
  0.5,
  2 ** 31,
  2 ** 53,
  1e308,
  [],
  [[[]]],
  {},
  { type: 'hello' },
]

/** Changes a text at one to four positions. */
export function mutateText(random: Random, text: string): string {
  let result = text
  for (let left = random.int(1, 4); left > 0; left -= 1) {
    const at = random.int(0, result.length)
    const length = random.int(0, Math.min(8, result.length - at))
    const kept = [result.slice(0, at), result.slice(at + length)] as const
    const inserted = random.pick([
      () => '',
      () => random.pick(TOKENS),
      () => String.fromCodePoint(random.int(1, 0x2ff)),
      () => result.slice(at, at + length).repeat(random.int(1, 3)),
    ])()
    result = kept.join(inserted)
  }
  return result
}

/** Replaces, adds or removes one field and keeps the rest of the message valid. */
export function mutateMessage(random: Random, message: Readonly<Record<string, unknown>>): string {
  if (random.chance(0.3)) return mutateText(random, JSON.stringify(message))
  const names = [...Object.keys(message), '__proto__', 'extra']
  const name = random.pick(names)
  const entries = Object.entries(message).filter(([key]) => key !== name)
  if (random.chance(0.8)) entries.push([name, random.pick(VALUES)])
  // Built as text, because `__proto__` in an object literal sets the prototype.
  return `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`
}

/** A nearly valid frame: any bit of its header may be wrong. */
export function mutateFrame(random: Random, spec: FrameSpec): Uint8Array {
  const flip = (): boolean => random.chance(0.04)
  const bytes = encodeFrame({
    ...spec,
    ...(flip() ? { opcode: random.int(0, 15) } : {}),
    ...(flip() ? { fin: false } : {}),
    ...(flip() ? { rsv1: true } : {}),
    ...(flip() ? { rsv2: true } : {}),
    ...(flip() ? { mask: false } : {}),
    ...(flip() ? { declaredLength: BigInt(random.word()) << BigInt(random.int(0, 32)) } : {}),
  })
  if (!random.chance(0.1)) return bytes
  const changed = new Uint8Array(bytes)
  for (let left = random.int(1, 4); left > 0; left -= 1)
    changed[random.int(0, changed.length - 1)] = random.int(0, 255)
  return random.chance(0.3) ? changed.subarray(0, random.int(1, changed.length)) : changed
}
