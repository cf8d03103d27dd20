/** Wildcards for values that differ from run to run. */
const WILD: Readonly<Record<string, string>> = {
  $UUID: '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}',
  $TOKEN: String.raw`swt1\.[\x21\x23-\x5b\x5d-\x7e]+`,
  $ID: String.raw`[a-z0-9]+\.[a-z0-9]+`,
  $COUNT: '[0-9]+',
  $TEXT: String.raw`(?:[^"\\]|\\.)+`,
}

function escape(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)
}

/** True when a text equals the golden one, except for wildcards. */
export function isGolden(text: string, golden: string): boolean {
  const pattern = golden
    .split(/(\$[A-Z]+)/)
    .map((part) => WILD[part] ?? escape(part))
    .join('')
  return new RegExp(`^${pattern}$`, 'u').test(text)
}
