// Tests a deployment: `SANDWIRE_TOKEN=… npm run smoke -- URL`. The token is not visible in the process list.

import { runSmoke } from './run-smoke.ts'

/** An origin, with or without a trailing slash. */
function isServer(url: string): boolean {
  if (!URL.canParse(url)) return false
  const { protocol, href, origin } = new URL(url)
  return /^https?:$/.test(protocol) && href === `${origin}/`
}

const [url = '', ...more] = process.argv.slice(2)
const token = process.env['SANDWIRE_TOKEN'] ?? ''
if (!isServer(url) || more.length > 0 || token === '') {
  console.error('Usage: SANDWIRE_TOKEN=TOKEN npm run smoke -- URL')
  process.exit(2)
}
try {
  await runSmoke({ url, token, report: (line) => console.log(line) })
} catch (error) {
  console.error(`error: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
