import { readdirSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

/** What is text, and so smaller in a coding. */
const TEXTS = ['.html', '.js', '.css', '.svg']
/** The next one would make the first start seconds longer, for a twentieth less. */
const BROTLI_QUALITY = 9

/** What is behind the name of a file in a coding, as control asks for it. */
const CODERS = {
  '.br': (bytes: Uint8Array) =>
    promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  '.gz': (bytes: Uint8Array) => promisify(gzip)(bytes, { level: 9 }),
} as const

async function compressFile(file: string): Promise<void> {
  const bytes = await readFile(file)
  for (const [suffix, encode] of Object.entries(CODERS)) {
    const coded = await encode(bytes)
    if (coded.length < bytes.length) await writeFile(`${file}${suffix}`, coded)
  }
}

/** Puts every text of a folder beside itself in the codings that browsers take, so that nobody makes them for each request. */
export async function compressFiles(folder: string): Promise<void> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  for (const file of files.filter((name) => TEXTS.includes(path.extname(name))))
    await compressFile(path.join(folder, file))
}
