/** How the dashboard is built: into dist/dashboard, where the HTTP door finds it. */
import { defineConfig } from 'vite';

export default defineConfig({
  // The page itself is `/`, its files are below this.
  base: '/dashboard/',
  build: {
    outDir: '../../dist/dashboard',
    emptyOutDir: true,
    assetsDir: '',
    // What is inlined would be refused by the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Of what is built into it.
    license: { fileName: 'licences.md' },
    target: 'es2022',
  },
});
