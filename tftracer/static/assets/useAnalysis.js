import{u as o}from"./state.js";import{B as r}from"./index.js";function c(s,e,n=()=>({})){const{client:t}=r();return o(()=>[s.trace,n()],i=>t.analysis(s.trace,e,n(),i))}export{c as u};
