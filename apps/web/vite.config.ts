import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

// Vite takes the environment's word for what is built, and the host builds in whatever it was started in.
process.env['NODE_ENV'] = 'production'

// oxlint-disable-next-line import/no-default-export -- Vite looks for one.
export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  define: { 'process.env.NODE_ENV': '"production"' },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0,
    // The page may not run inline scripts, and every browser it is for knows modulepreload.
    modulePreload: { polyfill: false },
  },
})
