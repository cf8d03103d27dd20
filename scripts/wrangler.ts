// The pinned wrangler by hand, on any Node that this project runs on: `npm run wrangler -- login`.

import { findWrangler } from '../deploy/cloudflare/wrangler.ts'

const child = Bun.spawn([...findWrangler(), ...process.argv.slice(2)], {
  stdio: ['inherit', 'inherit', 'inherit'],
})
process.exitCode = await child.exited
