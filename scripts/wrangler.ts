// Runs the pinned wrangler on any Node that this project supports: `npm run wrangler -- login`.

import { findWrangler } from '../deploy/cloudflare/wrangler.ts'

const child = Bun.spawn([...findWrangler(), ...process.argv.slice(2)], {
  stdio: ['inherit', 'inherit', 'inherit'],
})
process.exitCode = await child.exited
