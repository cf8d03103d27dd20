// Tries a deployment: `SANDWIRE_TOKEN=… npm run smoke -- URL`. The token stays out of the list of processes.

import { runSmoke } from './run-smoke.ts'

const [url] = process.argv.slice(2)
const token = process.env['SANDWIRE_TOKEN'] ?? ''
if (url === undefined || !URL.canParse(url) || token === '') {
  console.error('Usage: SANDWIRE_TOKEN=TOKEN npm run smoke -- URL')
  process.exit(2)
}
try {
  await runSmoke({ url, token, report: (line) => console.log(line) })
} catch (error) {
  console.error(`error: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
