/** Entry point of the dashboard: renders the page. */
import { render } from 'preact';
import { App } from './app.tsx';
import './colours.css';
import './layout.css';
import './views.css';
import './overview.css';
import './keys.css';
import 'uplot/dist/uPlot.min.css';

const root = document.querySelector('#app');
if (root !== null) render(<App />, root);
