import{u as o}from"./useAnalysis.js";function i(n,s,t){function u(e){e.node>=0&&s("select",e.node)}return{answer:o(n,t),select:u}}export{i as u};
